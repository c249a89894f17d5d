"""config.toml and the folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import folders
from harness.configuration import load_configuration
from harness.errors import SuiteError


def test_no_file_is_an_empty_configuration(tmp_path: Path) -> None:
    configuration = load_configuration(tmp_path / "absent.toml")
    assert (dict(configuration.runtimes), configuration.device_name, dict(configuration.datasets)) == ({}, None, {})


def test_it_reads_runtimes_device_and_datasets(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[runtimes]\ntflite = "/opt/tflite/bin/python"\nopenvino = "ov/bin/python"\n'
        'convert = "torch/bin/python"\n'
        '[device]\nname = "lab-1"\n[datasets]\nimagenet = "/data/imagenet"\n'
    )
    configuration = load_configuration(path)
    assert configuration.runtimes["tflite"] == Path("/opt/tflite/bin/python")
    assert configuration.runtimes["openvino"] == tmp_path / "ov/bin/python"
    assert configuration.runtimes["convert"] == tmp_path / "torch/bin/python"
    assert configuration.device_name == "lab-1"
    assert configuration.datasets["imagenet"] == Path("/data/imagenet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[runtimes]\npytorch = "/x"\n', "line 2: 'pytorch' is not known in runtimes. Allowed: onnxruntime, openvino"),
        ("[runtimes]\ntflite = 3\n", "line 2: tflite must be a path"),
        ('[runtimes]\ntflite = "/x\\u0000y"\n', "line 2: tflite must be a path"),
        (
            '[runtimes]\ntflite = "~no-such-user/bin/python"\n',
            "line 2: tflite begins with the home folder of an unknown",
        ),
        ('[device]\nnmae = "x"\n', "line 2: 'nmae' is not known in device. Allowed: name"),
        ("[device]\nname = 7\n", "line 2: the device's name must be a text"),
        ('runtime = "x"\n', "line 1: 'runtime' is not known. Allowed: runtimes"),
    ],
)
def test_a_mistake_names_line_and_allowed_values(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(SuiteError) as caught:
        load_configuration(path)
    assert message in str(caught.value)


def test_each_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in (
        ("DATA", folders.data_dir),
        ("CACHE", folders.cache_dir),
        ("CONFIG", folders.config_dir),
        ("STATE", folders.state_dir),
    ):
        monkeypatch.setenv(f"WEIGHBRIDGE_{name}", str(tmp_path / name))
        assert function() == tmp_path / name
        monkeypatch.delenv(f"WEIGHBRIDGE_{name}")
        assert function().name == "weighbridge"
    monkeypatch.setenv("WEIGHBRIDGE_STORE", "postgresql://db/x")
    assert folders.default_store() == "postgresql://db/x"
