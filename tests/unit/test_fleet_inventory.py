"""The fleet file is read strictly, and written without touching what people wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.fleet.enroll import device_at
from agents.fleet.inventory import FleetDevice, add_device, read_fleet, replace_fingerprint
from harness.errors import UsageError

KEY = "SHA256:" + "A" * 43
OTHER = "SHA256:" + "B" * 43
WHOLE = f'''# my fleet
[[device]]
name = "pi5"
host = "192.168.1.20"
user = "pi"
fingerprint = "{KEY}"   # read from its screen
'''


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return path


def test_a_device_needs_four_keys_and_the_rest_has_defaults(tmp_path: Path) -> None:
    (device,) = read_fleet(written(tmp_path, WHOLE)).devices
    assert device == FleetDevice("pi5", "192.168.1.20", "pi", KEY)
    assert (device.port, device.python, device.folder, device.environment) == (22, "python3", ".weighbridge", None)


def test_no_file_is_an_empty_fleet(tmp_path: Path) -> None:
    assert read_fleet(tmp_path / "none.toml").devices == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('user = "pi"', 'user = "pi"\npassword = "x"'), ["line 6", "password", "key_file"]),
        (('user = "pi"\n', ""), ["line 2", "user"]),
        ((KEY, "SHA256:short"), ["line 6", "fingerprint"]),
        ((KEY, "MD5:aa:bb"), ["line 6", "fingerprint"]),
        (('host = "192.168.1.20"', 'host = "-oProxyCommand=evil"'), ["line 4", "host"]),
        (('host = "192.168.1.20"', 'host = "a b"'), ["line 4", "host"]),
        (('user = "pi"', 'user = "-l"'), ["line 5", "user"]),
        (('name = "pi5"', 'name = "../pi5"'), ["line 3", "name"]),
        (('user = "pi"', 'user = "pi"\nport = "22"'), ["line 6", "port"]),
        (('user = "pi"', 'user = "pi"\nport = 70000'), ["line 6", "port"]),
        (('user = "pi"', 'user = "pi"\nfolder = "../up"'), ["line 6", "folder"]),
        (('user = "pi"', 'user = "pi"\nlabels = "arm"'), ["line 6", "labels"]),
        (("[[device]]", "[[devices]]"), ["devices", "device"]),
        (('name = "pi5"', 'name = "pi5'), ["not valid TOML"]),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(tmp_path: Path, change: tuple[str, str], words: list[str]) -> None:
    path = written(tmp_path, WHOLE.replace(*change))
    with pytest.raises(UsageError) as caught:
        read_fleet(path)
    assert str(path) in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_name_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        read_fleet(written(tmp_path, WHOLE + WHOLE))


def test_adding_keeps_what_people_wrote(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    mac = FleetDevice(
        "mac", "::1", "me", OTHER, 2222, Path('/home/me/key "1"'), "/opt/python 3.12/bin/python", "w", None, ("arm",)
    )
    add_device(path, mac)
    assert path.read_text().startswith(WHOLE)
    assert read_fleet(path).named("mac") == mac
    with pytest.raises(UsageError, match="already"):
        add_device(path, mac)


def test_a_new_fingerprint_changes_one_line_of_one_device(tmp_path: Path) -> None:
    twin = WHOLE.replace('"pi5"', '"clone"')  # a copied SD card shows the same key
    path = written(tmp_path, WHOLE + twin)
    replace_fingerprint(path, "clone", OTHER)
    fleet = read_fleet(path)
    assert (fleet.named("pi5").fingerprint, fleet.named("clone").fingerprint) == (KEY, OTHER)
    assert path.read_text() == WHOLE + twin.replace(KEY, OTHER)


def test_devices_are_chosen_by_name_or_by_all_labels(tmp_path: Path) -> None:
    text = "".join(
        WHOLE.replace('"pi5"', f'"{name}"') + f"labels = {labels}\n"
        for name, labels in (("a", '["arm", "lab"]'), ("b", '["arm"]'), ("c", "[]"))
    )
    fleet = read_fleet(written(tmp_path, text))
    assert [device.name for device in fleet.chosen([])] == ["a", "b", "c"]
    assert [device.name for device in fleet.chosen(["c", "a"])] == ["c", "a"]
    assert [device.name for device in fleet.chosen([], ["arm"])] == ["a", "b"]
    assert [device.name for device in fleet.chosen(["c"], ["arm", "lab"])] == ["c", "a"]
    with pytest.raises(UsageError, match="a, b, c"):
        fleet.chosen(["d"])
    with pytest.raises(UsageError, match="gpu"):
        fleet.chosen([], ["gpu"])


@pytest.mark.parametrize(
    ("address", "host", "user", "port"),
    [
        ("pi@raspberrypi.local", "raspberrypi.local", "pi", 22),
        ("me@10.0.0.1:2222", "10.0.0.1", "me", 2222),
        ("me@[fe80::1%eth0]:2222", "fe80::1%eth0", "me", 2222),
    ],
)
def test_addresses_are_read_as_ssh_writes_them(address: str, host: str, user: str, port: int) -> None:
    device = device_at("pi5", address)
    assert (device.host, device.user, device.port) == (host, user, port)


@pytest.mark.parametrize("address", ["host", "@host", "user@", "user@host:0", "user@host:99999", "user@-oX", "-u@host"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="user@host"):
        device_at("pi5", address)


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        read_fleet(path)
    except UsageError as error:
        assert "fleet.toml" in str(error)
