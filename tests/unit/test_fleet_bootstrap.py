"""What fits a bare device, decided without touching one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.tags import compatible_tags, cpython_tags, mac_platforms

from agents.fleet.probing import Probe, check
from agents.fleet.wheels import own_wheel, platforms_for, requirement
from harness.errors import TransportError, UsageError

GOOD = Probe("Linux", "aarch64", (3, 11, 2), (2, 36), 8_000_000_000, None, True, 0.0)


def test_a_usable_device_passes() -> None:
    check("pi5", GOOD)
    assert GOOD.described == "Linux aarch64, Python 3.11.2"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"system": "Windows"}, "weigh push"),
        ({"python": (3, 9, 2)}, "3.9.2"),
        ({"has_venv": False}, "python3-venv"),
        ({"free_bytes": 1_000_000}, "1 MB free"),
    ],
)
def test_what_is_missing_is_said(change: dict[str, object], words: str) -> None:
    with pytest.raises(TransportError, match=words):
        check("pi5", replace(GOOD, **change))  # type: ignore[arg-type]


def test_uv_makes_up_for_a_missing_venv() -> None:
    check("pi5", replace(GOOD, has_venv=False, uv="/home/pi/.local/bin/uv"))


def test_linux_platforms_go_down_from_the_devices_own_glibc() -> None:
    tags = platforms_for("Linux", "aarch64", (2, 36))
    assert tags[0] == "manylinux_2_36_aarch64" and "manylinux_2_17_aarch64" in tags
    assert "manylinux_2_37_aarch64" not in tags
    # packaging, which installers use, takes these platforms for what they are
    known = {tag.platform for tag in cpython_tags((3, 11), platforms=tags)}
    assert set(tags) <= known


def test_mac_platforms_are_the_macs_own() -> None:
    tags = platforms_for("Darwin", "arm64", (14, 5))
    assert tags[0] == next(iter(mac_platforms((14, 0), "arm64")))
    assert any(tag.platform == tags[0] for tag in compatible_tags((3, 11), "cp311", tags))


def test_extras_are_words() -> None:
    assert (
        requirement("/x/weighbridge-1-py3-none-any.whl", ("onnx", "tflite"))
        == "/x/weighbridge-1-py3-none-any.whl[onnx,tflite]"
    )
    with pytest.raises(UsageError, match="extra"):
        requirement("w", ("onnx]; evil",))


def test_a_file_that_is_no_wheel_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    with pytest.raises(UsageError, match="not a wheel of weighbridge"):
        own_wheel(tmp_path / "other-1.0-py3-none-any.whl", tmp_path)
