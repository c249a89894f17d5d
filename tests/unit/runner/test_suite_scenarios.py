"""Scenarios and their parameters in suite files: lists are swept, and what does not belong together is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SuiteError
from harness.runner.plan import Selection
from harness.suites import Group, Suite, read_suite

HEAD = 'name = "mine"\nversion = "1"\ntargets = { onnxruntime = ["cpu"] }\n'


def read(tmp_path: Path, group: str, head: str = HEAD) -> Suite:
    path = tmp_path / "mine.toml"
    path.write_text(f'{head}[[measure]]\nworkloads = ["efficientnet-lite0"]\n{group}\n')
    return read_suite(str(path))[0]


def only(tmp_path: Path, group: str, head: str = HEAD) -> Group:
    (found,) = read(tmp_path, group, head).groups
    return found


def test_lists_of_parameters_are_swept_and_every_combination_is_there(tmp_path: Path) -> None:
    group = only(tmp_path, 'scenario = "cold_start"\nfile_cache = ["warm", "cold"]\ncompile_cache = ["off", "warm"]')
    assert [dict(one) for one in group.parameters] == [
        {"file_cache": file, "compile_cache": compiled} for file in ("warm", "cold") for compiled in ("off", "warm")
    ]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('scenario = "single_stream"', [{}]),
        ('scenario = "offline"', [{}]),
        ('scenario = "multi_stream"', [{"samples_per_query": 8}]),
        ('scenario = "multi_stream"\nsamples_per_query = [2, 4]', [{"samples_per_query": 2}, {"samples_per_query": 4}]),
        ('scenario = "server"', [{"percentile": 99}]),  # the limit is the workload's own
        ('scenario = "server"\nlimit_ms = 20', [{"limit_ms": 20.0, "percentile": 99}]),
        ('scenario = "duty_cycle"\nperiod_s = [1, 0.1]', [{"period_s": 1.0}, {"period_s": 0.1}]),
        ('scenario = "sustained"\nduration_s = 60', [{"duration_s": 60.0}]),
        ('scenario = "cold_start"', [{"file_cache": "warm", "compile_cache": "off"}]),
    ],
)
def test_each_scenario_has_its_own_parameters_with_defaults(
    tmp_path: Path, text: str, parameters: list[dict[str, object]]
) -> None:
    assert [dict(one) for one in only(tmp_path, text).parameters] == parameters


def test_a_sustained_window_is_as_long_as_its_parameter_says(tmp_path: Path) -> None:
    group = only(tmp_path, 'scenario = "sustained"\nduration_s = [60, 600]')
    assert (group.duration_s, group.limit_s) == (600, 600)


def test_a_duration_that_is_asked_for_by_name_is_a_sustained_window_s_too(tmp_path: Path) -> None:
    """The length of a sustained window is part of its case, which must not keep the suite's own."""
    group = Selection(duration_s=5).adjust(only(tmp_path, 'scenario = "sustained"\nduration_s = 600'))
    assert (group.duration_s, group.parameters) == (5, ({"duration_s": 5.0},))
    assert Selection(duration_s=5).adjust(only(tmp_path, 'scenario = "offline"')).parameters == ({},)


def test_slots_are_swept_and_the_word_default_leaves_them_to_the_runtime(tmp_path: Path) -> None:
    assert only(tmp_path, 'scenario = "offline"\nslots = [1, 4, "default"]').slots == (1, 4, None)
    assert only(tmp_path, 'scenario = "offline"\nslots = 2').slots == (2,)  # as suites before wrote it
    assert only(tmp_path, 'scenario = "offline"').slots == (None,)


def test_artifact_precisions_by_the_old_and_the_new_key(tmp_path: Path) -> None:
    assert only(tmp_path, 'scenario = "offline"\nartifact_precision = "int8"').artifact_precisions == ("int8",)
    many = only(tmp_path, 'scenario = "offline"\nartifact_precisions = ["fp32", "int8-float-ends", "int4"]')
    assert many.artifact_precisions == ("fp32", "int8-float-ends", "int4")


def test_a_group_takes_the_suite_s_way_of_repeating_and_may_have_its_own(tmp_path: Path) -> None:
    head = HEAD.replace("targets", "trials = 8\nmax_trials = 16\nhalf_width = 0.02\nbudget_s = 600\ntargets")
    suite = read(tmp_path, 'scenario = "offline"', head)
    (group,) = suite.groups
    assert suite.budget_s == 600
    assert (group.trials, group.most_trials, group.half_width, group.fixed) == (8, 16, 0.02, False)
    assert group.stopping.looks == (8, 12, 16)
    fixed = only(tmp_path, 'scenario = "offline"\ntrials = 3', head)
    assert (fixed.trials, fixed.most_trials, fixed.fixed, fixed.stopping.looks) == (3, 3, True, (3,))
    longer = only(tmp_path, 'scenario = "offline"\nmax_trials = 24', head)
    assert longer.stopping.looks == (8, 12, 16, 24)
    own = only(tmp_path, 'scenario = "offline"\ntrials = 9\nmax_trials = 15\nlooks = [9, 15]\nhalf_width = 0.1', head)
    assert (own.stopping.looks, own.stopping.half_width) == ((9, 15), 0.1)
    assert only(tmp_path, 'scenario = "server"', head).most_trials == 1  # a curve, not repeated until it is narrow


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('scenario = "single_stream"\nperiod_s = 1', "line 7: period_s belongs to the scenario duty_cycle only."),
        ('scenario = "offline"\nsamples_per_query = 8', "samples_per_query belongs to the scenario multi_stream only."),
        (
            'scenario = "single_stream"\nslots = 2',
            "line 7: slots belong to the scenarios offline, multi_stream, server",
        ),
        ('scenario = "duty_cycle"\nperiod_s = [1, 0]', "period_s must be a number from 0.001 to 3600, not 0."),
        ('scenario = "duty_cycle"\nperiod_s = []', "period_s must be a list that is not empty."),
        (
            'scenario = "multi_stream"\nsamples_per_query = 1',
            "samples_per_query must be a whole number from 2 to 65536",
        ),
        ('scenario = "cold_start"\nfile_cache = "hot"', "file_cache cannot be 'hot'. Allowed: warm, cold."),
        ('scenario = "server"\nlimit_ms = true', "limit_ms must be a number from 0.001 to"),
        ('scenario = "server"\nmax_trials = 4', "line 7: the scenario server has a fixed number of trials"),
        ('scenario = "sustained"\nduration_s = "long"', "line 7: duration_s must be a number from 1 to 86400"),
        (
            'scenario = "offline"\nslots = [1, "all"]',
            "slots must be a whole number from 1 to 1024, not 'all' or \"default\".",
        ),
        (
            'scenario = "offline"\nartifact_precisions = ["int7"]',
            "'int7' is not known in artifact_precisions. Allowed: fp32",
        ),
        (
            'scenario = "offline"\nartifact_precisions = ["int8"]\nartifact_precision = "int8"',
            "line 8: say either artifact_precision or artifact_precisions, not both.",
        ),
        (
            'scenario = "offline"\ntrials = 8\nmax_trials = 4',
            "line 8: max_trials must be a whole number from 8 to 1000",
        ),
        (
            'scenario = "offline"\ntrials = 8\nmax_trials = 12\nlooks = [8, 10]',
            "looks must rise from trials to max_trials",
        ),
        ('scenario = "offline"\nhalf_width = 0', "half_width must be a number from 0.001 to 1, not 0."),
    ],
)
def test_what_does_not_fit_names_the_line_and_the_way_out(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
