"""Public results in a fresh home, as a user brings them in and looks at them."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

Weigh = Callable[..., "subprocess.CompletedProcess[str]"]
TREE = Path(__file__).parents[1] / "fixtures" / "mlperf"


def test_reference_results_and_a_tree_beside_them(weigh: Weigh, own_folders: Path) -> None:
    first = weigh("import", "reference")
    assert (first.returncode, first.stderr) == (0, "")
    assert "32 results, 32 new" in first.stdout
    tree = weigh("import", "mlperf", str(TREE))
    assert (tree.returncode, tree.stderr) == (0, "")
    assert "10 results, 1 new, 9 already there" in tree.stdout
    found = json.loads(weigh("results", "--family", "resnet50", "--hardware", "NVIDIA T4", "--json").stdout)
    official = {document["case"]["scenario"]: document["official"]["value"] for document in found}
    assert official == {"single_stream": 0.818169, "multi_stream": 2.194723, "server": 4652.01, "offline": 6121.33}
    assert {document["run"]["source"]["kind"] for document in found} == {"imported"}
    table = weigh("results", "--newest", "--scenario", "single_stream").stdout
    assert "NVIDIA A100 PCIe" in table
    rows = list(csv.DictReader(io.StringIO(weigh("results", "--csv").stdout)))
    assert len(rows) == 33
    store = own_folders / "data" / "weighbridge.sqlite"
    assert str(store) in weigh("db", "info").stdout


def test_refusals_are_one_sentence_with_the_right_exit_status(weigh: Weigh, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database " * 100)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    for arguments, status, said in (
        (("results",), 1, "There is no database"),
        (("results", "--store", f"sqlite:///{notes}"), 1, "not an SQLite database"),
        (("results", "--store", f"sqlite:///{other}"), 1, "something else"),
        (("results", "--store", "nonsense"), 2, "store"),
        (("results", "--store", "postgresql://me:s3cret@127.0.0.1:1/x"), 2, "password"),
        (("results", "--store", "postgresql://me@127.0.0.1:1/x"), 1, "cannot be reached"),
        (("import", "mlperf", str(tmp_path)), 2, "mlperf_log_summary.txt"),
        (("db", "annotate", "missing", "text"), 1, "There is no database"),
    ):
        refused = weigh(*arguments)
        assert refused.returncode == status, (arguments, refused)
        assert said in refused.stderr, (arguments, refused)
        assert "Traceback" not in refused.stderr
        assert "s3cret" not in refused.stderr
        assert refused.stdout == ""
