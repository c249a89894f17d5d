"""The user's config.toml, every table of it optional.

`[runtimes]` names an interpreter per backend, such as `tflite = "/opt/tflite/bin/python"`, because some runtimes
exclude each other in one environment, and as `convert` that of an environment with torch; `[device]` holds the device's
`name`; `[datasets]` says where large datasets lie, such as `imagenet = "/data/imagenet"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backends import BACKENDS
from harness.folders import config_dir
from harness.toml_files import TomlFile, read_toml

DATASETS = ("imagenet",)
RUNTIMES = (*BACKENDS, "convert")  # convert: see docs/models.md


@dataclass(frozen=True)
class Configuration:
    """What the file says; empty where there is no file."""

    runtimes: Mapping[str, Path] = field(default_factory=dict)  # backend, or convert -> Python interpreter
    device_name: str | None = None
    datasets: Mapping[str, Path] = field(default_factory=dict)  # name -> folder


def configuration_file() -> Path:
    """Return where the file is looked for."""
    return config_dir() / "config.toml"


def load_configuration(path: Path | None = None) -> Configuration:
    """Read the file at `path`, or the user's own. No file is an empty configuration.

    Raises UsageError or SuiteError that names the file, the line and what is allowed there.
    """
    path = path or configuration_file()
    if not path.exists():
        return Configuration()
    document = read_toml(path)
    data = document.data
    document.check_keys((), data, ("runtimes", "device", "datasets"))
    device = data.get("device", {})
    document.check_keys(("device",), device, ("name",))
    name = device.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise document.error(("device", "name"), "the device's name must be a text that is not empty.")
    return Configuration(
        runtimes=_paths(document, "runtimes", data.get("runtimes", {}), RUNTIMES),
        device_name=name,
        datasets=_paths(document, "datasets", data.get("datasets", {}), DATASETS),
    )


def _paths(document: TomlFile, table: str, values: Any, names: tuple[str, ...]) -> dict[str, Path]:
    document.check_keys((table,), values, names)
    found = {}
    for name, value in values.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise document.error((table, name), f"{name} must be a path, written as a text.")
        try:
            found[name] = document.path.parent / Path(value).expanduser()
        except RuntimeError as error:
            raise document.error((table, name), f"{name} begins with the home folder of an unknown user.") from error
    return found
