"""Bringing a cache to a device: by content, only what is missing, whole or not at all."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agents.fleet.enroll import device_at, enroll
from agents.fleet.inventory import known_hosts_file
from agents.fleet.order import order_for
from agents.fleet.sync import send_files
from agents.fleet.transport import Connection
from harness.errors import UsageError


@pytest.fixture
def connection(ssh_device, tmp_path: Path):
    started = ssh_device("pi5")
    fleet = tmp_path / "fleet.toml"
    asked = replace(device_at("pi5", started.address), key_file=started.login_key, python=sys.executable)
    device = enroll(fleet, asked, lambda shown: True)
    with Connection(device, known_hosts_file(fleet)) as opened:
        yield opened


def test_only_what_is_missing_or_different_is_sent(connection: Connection, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    names = tuple(f"sha256/{number % 3}/blob {number}" for number in range(30))
    for name in names:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(name.encode() * 100)
    assert send_files(connection, here, names, str(there), lambda text: None) == 30
    assert {name: (there / name).read_bytes() for name in names} == {name: (here / name).read_bytes() for name in names}
    assert send_files(connection, here, names, str(there), lambda text: None) == 0
    damaged = there / names[4]
    damaged.write_bytes(damaged.read_bytes().replace(b"4", b"5"))  # the same size, another content
    assert send_files(connection, here, names, str(there), lambda text: None) == 1
    assert damaged.read_bytes() == (here / names[4]).read_bytes()
    assert not list(there.rglob("*.part"))


OWN = """
name = "mine"
version = "1"
title = "Mine"
seed = 1

[targets]
onnxruntime = ["cpu"]

[[workload]]
name = "my-model"
title = "My model"
family = "my-model"
task = "random_inputs"
model = {{ path = "{path}", format = "onnx" }}
latency_samples = "random"
scenarios = ["single_stream"]

[[measure]]
scenario = "single_stream"
workloads = ["my-model"]
"""


def test_a_suites_own_model_travels_when_it_lies_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "net.onnx").write_bytes(b"x")
    (folder / "mine.toml").write_text(OWN.format(path="models/net.onnx"))
    order = order_for(str(folder / "mine.toml"), [], [], [])
    assert order.beside == ("models/net.onnx",)
    (tmp_path / "net.onnx").write_bytes(b"x")
    (folder / "mine.toml").write_text(OWN.format(path="../net.onnx"))
    with pytest.raises(UsageError, match="beside the suite file"):
        order_for(str(folder / "mine.toml"), [], [], [])
