"""Suite files are read strictly; a mistake names file, line and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SuiteError, UsageError
from harness.suites import read_suite, suite_names

GOOD = """name = "mine"
version = "1"
trials = 2

[targets]
onnxruntime = ["cpu"]

[[measure]]
scenario = "single_stream"
workloads = ["efficientnet-lite0"]
threads = [1, "available"]
"""


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_product_s_suites_are_valid_and_small_enough() -> None:
    assert suite_names() == ("precisions", "quick", "standard", "thorough")
    for name in suite_names():
        suite, _ = read_suite(name)
        assert suite.name == name
        assert suite.reference.digest == suite.digest
        assert len(suite.digest) == 64


def test_a_user_s_file_is_read(tmp_path: Path) -> None:
    suite, document = read_suite(write(tmp_path, GOOD))
    (group,) = suite.groups
    assert (group.trials, group.threads, dict(group.targets)) == (2, (1, "available"), {"onnxruntime": ("cpu",)})
    assert document.path == tmp_path / "mine.toml"


def test_comments_and_spaces_do_not_change_the_digest_and_content_does(tmp_path: Path) -> None:
    digest = read_suite(write(tmp_path, GOOD))[0].digest
    assert (
        read_suite(write(tmp_path, "# a comment\n" + GOOD.replace("trials = 2", "trials   =   2")))[0].digest == digest
    )
    assert read_suite(write(tmp_path, GOOD.replace("trials = 2", "trials = 3")))[0].digest != digest


def test_a_workload_with_a_model_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    text = GOOD.replace('["efficientnet-lite0"]', '["shop-items"]') + (
        '\n[[workload]]\nname = "shop-items"\ntask = "image_classification"\n'
        'model = { path = "model.onnx", format = "onnx" }\n'
        'dataset = { name = "shop", folder = "photos" }\nmetric = "top1"\n'
    )
    suite, _ = read_suite(write(tmp_path, text))
    workload = suite.workloads["shop-items"]
    assert not isinstance(workload.model, str)
    assert workload.model.path == tmp_path / "model.onnx"
    assert workload.dataset is not None
    assert workload.dataset.folder == tmp_path / "photos"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("trials = 2", "trails = 2"), "mine.toml, line 3: 'trails' is not known. Allowed: name, version"),
        (("trials = 2", "trials = 0"), "line 3: trials must be a whole number from 1 to 1000, not 0"),
        (("trials = 2", "trials = true"), "line 3: trials must be a whole number"),
        (('["cpu"]', '["cpv"]'), "line 6: onnxruntime has no target 'cpv'. Allowed: cpu, cuda, tensorrt"),
        (("onnxruntime", "onnxrun"), "line 6: 'onnxrun' is not known in targets. Allowed: onnxruntime, openvino"),
        (("single_stream", "singlestream"), "line 9: there is no scenario 'singlestream'. Allowed: single_stream, off"),
        (("efficientnet-lite0", "efficientnet"), "line 10: 'efficientnet' is not known in workloads. Allowed: "),
        (('"available"', '"all"'), 'line 11: threads must be a whole number from 1, "available" or "default"'),
        (("threads", "thread"), "line 11: 'thread' is not known in measure[1]. Allowed: scenario, workloads"),
        (('version = "1"\n', ""), "version must be a text that is not empty"),
        (('"mine"', '"mi\\u0000ne"'), "line 1: name must be one line of at most 200 characters"),
        (('"mine"', '"mi\\u001b[31mne"'), "line 1: name must be one line of at most 200 characters"),
        (('"mine"', '"' + "x" * 201 + '"'), "line 1: name must be one line of at most 200 characters"),
        (("trials = 2", "trials = " + "9" * 5000), "mine.toml holds a value that cannot be read"),
        (("[[measure]]", "[[measures]]"), "line 8: 'measures' is not known"),
        (("[targets]", "[targets"), "mine.toml is not valid TOML"),
    ],
)
def test_a_typo_names_file_line_and_allowed_values(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(SuiteError) as caught:
        read_suite(write(tmp_path, GOOD.replace(*change)))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_what_is_no_suite_lists_the_suites() -> None:
    names = r"Suites: precisions, quick, standard, thorough\."
    with pytest.raises(UsageError, match=rf"'quikc' is neither a suite nor a file\. {names}"):
        read_suite("quikc")
