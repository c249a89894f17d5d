"""`weigh results`, `db`, `import` and `check`, in one process, on real stores."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from db import commands
from db.ingest import ingest
from db.store import open_store
from harness.documents import Bundle, read_run
from harness.errors import StoreError, UsageError
from harness.records import Flag, Quantile, Run

Maker = Callable[..., Bundle]
Weigh = Callable[..., Result]
ONE_KIND = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # where the database makes no difference
TREE = Path(__file__).parents[2] / "fixtures" / "mlperf"


@pytest.fixture
def command(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Weigh:
    """Run one of this room's commands on an empty store. Errors meant for a person are raised, as the front door wants."""
    monkeypatch.setenv("WEIGHBRIDGE_STORE", store_url)
    app = typer.Typer()
    commands.register(app)

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def fill(store_url: str) -> Callable[[Bundle], None]:
    def put(bundle: Bundle) -> None:
        store = open_store(store_url)
        ingest(store.engine, bundle)
        store.close()

    return put


def test_results_as_table_json_and_csv(command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker) -> None:
    fill(make_bundle(p50=5.125, workloads=("resnet50-seeded", "minilm-l6")))
    table = command("results").stdout
    assert "resnet50-seeded" in table
    assert "5.125" in table
    assert "86.70 %" in table
    documents = json.loads(command("results", "--json").stdout)
    assert [document["case"]["workload"] for document in documents] == ["resnet50-seeded", "minilm-l6"]
    assert documents[0]["device"]["name"] == "desk"
    assert documents[0]["run"]["suite"]["name"] == "quick"
    rows = list(csv.DictReader(io.StringIO(command("results", "--csv", "--workload", "minilm-l6").stdout)))
    assert [(row["workload"], row["p50_ms"], row["energy_j"]) for row in rows] == [("minilm-l6", "5.125", "")]


@ONE_KIND
def test_what_the_limit_leaves_out_is_said(command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker) -> None:
    fill(make_bundle(workloads=("a", "b", "c")))
    limited = command("results", "--limit", "2", "--json")
    assert len(json.loads(limited.stdout)) == 2
    assert "2 of 3 measurements shown" in limited.stderr
    assert command("results", "--limit", "3").stderr == ""


@ONE_KIND
def test_a_name_from_a_device_cannot_steer_terminal_or_spreadsheet(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    fill(make_bundle(device="=cmd()\x1b[2J[bold red]x"))
    assert "\x1b" not in command("results").stdout
    assert "[bold red]x" in command("results").stdout.replace("\n", "")
    cell = next(csv.DictReader(io.StringIO(command("results", "--csv").stdout)))["device"]
    assert cell == "'=cmd()?[2J[bold red]x"


@ONE_KIND
def test_an_empty_store_says_what_to_do(command: Weigh) -> None:
    assert command("db", "migrate").exit_code == 0
    assert "weigh import reference" in command("results").stdout
    assert json.loads(command("results", "--json").stdout) == []
    assert "nothing to check" in command("check").stdout


@ONE_KIND
def test_two_formats_at_once_are_a_wrong_usage(command: Weigh) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        command("results", "--json", "--csv")


@ONE_KIND
def test_a_password_in_an_argument_is_refused(command: Weigh) -> None:
    with pytest.raises(UsageError, match="can be read by every user") as refusal:
        command("results", "--store", "postgresql://me:s3cret@localhost/db")
    assert "s3cret" not in str(refusal.value)


def test_importing_twice_changes_nothing(command: Weigh) -> None:
    assert "10 results, 10 new, 0 already there" in command("import", "mlperf", str(TREE)).stdout
    assert "10 results, 0 new, 10 already there" in command("import", "mlperf", str(TREE)).stdout
    reference = json.loads(command("import", "reference", "--json").stdout)
    assert reference == {"results": 32, "new": 23, "known": 9}
    seen = json.loads(command("db", "info", "--json").stdout)
    assert seen["rows"]["runs"] == seen["rows"]["measurements"] == seen["data_version"] == 33
    assert seen["migration"] == seen["newest_migration"]
    assert seen["newest_run"] == "2023-04-05T00:00:00+00:00"
    assert "measurements" in command("db", "info").stdout


@ONE_KIND
def test_a_spoilt_file_makes_the_import_exit_1(command: Weigh, tmp_path: Path) -> None:
    shutil.copytree(TREE, tmp_path / "tree")
    spoilt = tmp_path / "tree/closed/NVIDIA/results/A100-PCIe-80GBx1_TRT/resnet50/Offline/accuracy/accuracy.txt"
    spoilt.write_text("accuracy=")
    result = command("import", "mlperf", str(tmp_path / "tree"))
    assert result.exit_code == 1
    assert "9 results, 9 new" in result.stdout
    assert result.stderr.count("\n") == 1
    assert "resnet50/Offline/accuracy/accuracy.txt was not imported" in result.stderr


def test_check_finds_what_became_worse(command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker) -> None:
    fill(make_bundle(p50=10.0, workloads=("a", "b")))
    first = command("check")
    assert (first.exit_code, "nothing to compare with" in first.stdout) == (0, True)
    fill(make_bundle(p50=10.5, workloads=("a", "b", "c"), started_at="2026-06-01T10:00:00+00:00"))
    same = command("check")
    assert same.exit_code == 0
    assert "2 unchanged, 1 without an earlier measurement" in same.stdout
    assert command("check", "--threshold", "4").exit_code == 1

    def slow_b_broken_c(run: Run) -> Run:
        a, b, c = run.measurements
        latency = b.latency_ms
        assert latency is not None
        slow = replace(latency, p50=replace(latency.p50, value=12.0), p90=replace(latency.p90, value=13.0), max=14.0)
        slow = replace(slow, p95=replace(slow.p95, value=13.5))
        broken = replace(c, status="failed", reason="The worker was killed.", latency_ms=None, throughput_per_s=None)
        return replace(run, measurements=(a, replace(b, latency_ms=slow), broken))

    worse = make_bundle(
        p50=10.4, workloads=("a", "b", "c"), started_at="2026-07-01T10:00:00+00:00", change=slow_b_broken_c
    )
    fill(worse)
    report = command("check", "desk")
    assert report.exit_code == 1
    assert "median latency 10.5 -> 12 ms, 14.3 % slower." in report.stdout
    assert "It was ok before and is failed now: The worker was killed." in report.stdout
    document = json.loads(command("check", "--json").stdout)
    assert document["regressions"] == 2
    assert [case["verdict"] for case in document["devices"][0]["cases"]] == ["same", "regression", "regression"]
    assert document["devices"][0]["cases"][1]["time_ratio"] == pytest.approx(12 / 10.5)

    run_id = read_run(worse.record).run_id
    noted = command("db", "annotate", run_id, "Fan was blocked", "--bad", "--author", "Ann")
    assert "counts no more" in noted.stdout
    assert command("check").exit_code == 0, "a run marked bad is not checked"


@ONE_KIND
def test_check_looks_past_failed_runs_to_the_last_good_one(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    def fail(run: Run) -> Run:
        broken = replace(run.measurements[0], status="failed", reason="Out of memory.", latency_ms=None)
        return replace(run, measurements=(broken,))

    fill(make_bundle(p50=10.0))
    fill(make_bundle(started_at="2026-06-01T10:00:00+00:00", change=fail))
    fill(make_bundle(p50=20.0, started_at="2026-07-01T10:00:00+00:00"))
    assert "10 -> 20 ms" in command("check").stdout


@ONE_KIND
def test_a_disturbed_run_is_undecided_and_the_undisturbed_one_before_it_stays_the_measure(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    def hogged(run: Run) -> Run:
        flag = Flag("other_load", "Other processes used 60 % of the processors.")
        return replace(run, measurements=tuple(replace(one, flags=(flag,)) for one in run.measurements))

    fill(make_bundle(p50=10.0))
    fill(make_bundle(p50=30.0, started_at="2026-06-01T10:00:00+00:00", change=hogged))
    busy = command("check")
    assert (busy.exit_code, "1 undecided" in busy.stdout) == (0, True)
    assert "the newest measurement was disturbed or did not settle (other load)" in busy.stdout
    fill(make_bundle(p50=20.0, started_at="2026-07-01T10:00:00+00:00"))
    quiet = command("check")
    assert quiet.exit_code == 1
    assert "10 -> 20 ms, 100.0 % slower" in quiet.stdout  # not 30 -> 20, which would have hidden it


@ONE_KIND
def test_intervals_that_overlap_raise_no_alarm(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    def sure(low: float, high: float) -> Callable[[Run], Run]:
        def change(run: Run) -> Run:
            (one,) = run.measurements
            assert one.latency_ms is not None
            method = "95 % interval of the median over 9 trials"
            p50 = replace(one.latency_ms.p50, low=low, high=high, method=method)
            return replace(run, measurements=(replace(one, latency_ms=replace(one.latency_ms, p50=p50)),))

        return change

    fill(make_bundle(p50=10.0, change=sure(9.0, 12.0)))
    fill(make_bundle(p50=12.5, started_at="2026-06-01T10:00:00+00:00", change=sure(11.0, 14.0)))
    wide = command("check")
    assert (wide.exit_code, "the 95 % intervals of the two overlap" in wide.stdout) == (0, True)
    fill(make_bundle(p50=16.0, started_at="2026-07-01T10:00:00+00:00", change=sure(15.0, 17.0)))
    assert command("check").exit_code == 1


@ONE_KIND
def test_results_say_how_far_to_trust_them(command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker) -> None:
    def change(run: Run) -> Run:
        (one,) = run.measurements
        assert one.latency_ms is not None and one.accuracy is not None
        p50 = Quantile(5.125, 5.0, 5.25, "95 % interval of the median over 9 trials, one unit measured")
        accuracy = replace(one.accuracy, gate="failed", relative=0.7)
        effective = replace(one.effective, precision="bf16")
        case = replace(one.case, requested_precision="default")
        return replace(run, measurements=(replace(
            one, case=case, case_key=case.key, effective=effective, accuracy=accuracy,
            latency_ms=replace(one.latency_ms, p50=p50, p90=replace(one.latency_ms.p90, value=6.2)),
        ),))  # fmt: skip

    fill(make_bundle(p50=5.125, change=change))
    table = command("results").stdout
    for words in ("5.000–5.250 (9)", "failed", " F "):
        assert words in table
    assert "fp32 default as bf16" in " ".join(table.replace("│", " ").split())
    (document,) = json.loads(command("results", "--json").stdout)
    assert document["trust"]["grade"] == "F"
    assert document["trust"]["doubts"][0]["code"] == "gate_failed"
    assert {"throughput", "sampling", "rate_curve", "over_time", "fidelity"} <= set(document)
    assert {"self_cost", "preparation"} <= set(document["run"])


def test_check_finds_a_target_that_stopped_working(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    """What cannot run is recorded before its model is looked at, so its case has another key than the one that ran."""

    def refuse(run: Run) -> Run:
        case = replace(run.measurements[0].case, source_weights=None, dataset=None, input_size=None)
        assert case.key != run.measurements[0].case_key
        gone = replace(
            run.measurements[0],
            case=case,
            case_key=case.key,
            status="unsupported",
            reason="libcuda.so.1 not found.",
            artifact=None,
            effective=None,
            latency_ms=None,
            throughput_per_s=None,
            accuracy=None,
            trials=(),
        )
        return replace(run, measurements=(gone,))

    fill(make_bundle(p50=10.0))
    fill(make_bundle(started_at="2026-06-01T10:00:00+00:00", change=refuse))
    report = command("check")
    assert report.exit_code == 1
    assert "was ok before and is unsupported now: libcuda.so.1 not found." in report.stdout


@ONE_KIND
def test_check_does_not_mix_devices_or_imports(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker
) -> None:
    command("import", "mlperf", str(TREE))
    fill(make_bundle(p50=5.0))
    twin = "00000000-0000-4000-8000-000000000002"
    fill(make_bundle(p50=50.0, device_uuid=twin, started_at="2026-06-01T10:00:00+00:00"))
    assert command("check").exit_code == 0
    with pytest.raises(UsageError, match="2 devices are named 'desk'") as refusal:
        command("check", "desk")
    assert twin in refusal.value.fix
    assert command("check", twin).exit_code == 0
    with pytest.raises(UsageError, match="no measurements by a device 'nobody'"):
        command("check", "nobody")


@ONE_KIND
def test_a_note_beside_a_run_that_is_not_there(command: Weigh) -> None:
    command("db", "migrate")
    with pytest.raises(StoreError, match="no run"):
        command("db", "annotate", "missing", "text")


@ONE_KIND
def test_every_command_has_help_with_an_example(command: Weigh) -> None:
    for words in (
        ["results"],
        ["check"],
        ["db", "info"],
        ["db", "migrate"],
        ["db", "annotate"],
        ["import", "mlperf"],
        ["import", "reference"],
    ):
        text = command(*words, "--help").stdout
        assert "Example" in text, words
        assert f"weigh {' '.join(words)}" in " ".join(text.split()), words


@ONE_KIND
def test_reading_commands_do_not_make_a_store(tmp_path: Path, command: Weigh, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Any = tmp_path / "not yet" / "a.sqlite"
    monkeypatch.setenv("WEIGHBRIDGE_STORE", f"sqlite:///{path}")
    with pytest.raises(StoreError, match="There is no database"):
        command("results")
    assert not path.parent.exists()


@ONE_KIND
def test_a_narrow_terminal_gets_fewer_columns_and_whole_words(
    command: Weigh, fill: Callable[[Bundle], None], make_bundle: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(make_bundle(p50=5.125))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = command("results").stdout
    assert max(len(line) for line in narrow.splitlines()) <= 80
    for word in ("resnet50-seeded", "single_stream", "5.125", "195.1", "ok"):
        assert word in narrow
    assert "Source" not in narrow
