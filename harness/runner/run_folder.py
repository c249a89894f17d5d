"""The folder of an unfinished run: its request, and each finished trial, durable as soon as it ends.

`<state>/runs/<run_id>/` holds request.json and trials/<key>/ with outcome.json and raw files. A trial's folder
is written under another name, flushed, and renamed: after a power cut it is whole or not there.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.errors import UsageError, WeighbridgeError
from harness.runner.trial_process import Outcome

REQUEST_SCHEMA = "weighbridge/request/1"


class RunFolder:
    """One run on its way."""

    def __init__(self, runs: Path, run_id: str) -> None:
        self.run_id = run_id
        self.path = runs / run_id
        self._trials = self.path / "trials"

    @classmethod
    def create(cls, runs: Path, run_id: str, request: Mapping[str, Any]) -> RunFolder:
        """Make the folder. Raises WeighbridgeError where the state folder cannot be written."""
        folder = cls(runs, run_id)
        try:
            folder._trials.mkdir(parents=True)
        except OSError as error:
            raise folder._refused(error) from error
        folder.write("request.json", {"schema": REQUEST_SCHEMA, **request})
        return folder

    @classmethod
    def open(cls, runs: Path, run_id: str) -> tuple[RunFolder, dict[str, Any]]:
        """Return an unfinished run and its request. Raises UsageError where there is none."""
        try:
            known = str(uuid.UUID(run_id)) == run_id.lower()
        except ValueError:
            known = False
        folder = cls(runs, run_id.lower())
        if not known or not (folder.path / "request.json").is_file():
            there = sorted(entry.name for entry in runs.iterdir() if entry.is_dir()) if runs.is_dir() else []
            fix = f"Unfinished runs: {', '.join(there)}." if there else "There are no unfinished runs."
            raise UsageError(f"There is no unfinished run {run_id!r} here.", fix)
        try:
            request = json.loads((folder.path / "request.json").read_text(encoding="utf-8"))
            if request["schema"] != REQUEST_SCHEMA:
                raise ValueError("another version wrote it")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"The unfinished run {run_id} cannot be read ({error}).", "Start a new run.") from error
        return folder, request

    def renamed(self, run_id: str) -> RunFolder:
        """Move everything to another run's identifier, because the old one has been stored."""
        folder = RunFolder(self.path.parent, run_id)
        self.path.rename(folder.path)
        return folder

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write one JSON file, whole or not at all. Raises WeighbridgeError where the disk refuses."""
        part = self.path / f"{name}.part"
        try:
            _write(part, json.dumps(document, allow_nan=False).encode())
            os.replace(part, self.path / name)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> WeighbridgeError:
        return WeighbridgeError(
            f"The run cannot be kept in {self.path}: {error.strerror or error}.",
            "Free some space there, or set WEIGHBRIDGE_STATE to a folder that can be written.",
        )

    def save(self, key: str, outcome: Outcome) -> None:
        """Keep a finished trial. Raises WeighbridgeError where the disk refuses."""
        part = self._trials / f".{key}"
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            for name, data in outcome.files.items():
                _write(part / name, data)
            document = {**asdict(outcome), "files": sorted(outcome.files)}
            _write(part / "outcome.json", json.dumps(document, allow_nan=False).encode())
            part.rename(self._trials / key)
        except OSError as error:
            raise WeighbridgeError(
                f"A finished trial cannot be kept in {self._trials}: {error.strerror or error}.",
                f"Free some space there, then go on with `weigh run --resume {self.run_id}`.",
            ) from error

    def load(self, key: str) -> Outcome | None:
        """Return a finished trial, None where it is still to be run."""
        folder = self._trials / key
        if not folder.is_dir():
            return None
        try:
            document = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
            document["files"] = {name: (folder / name).read_bytes() for name in document["files"]}
            document["notes"] = tuple(document["notes"])
            return Outcome(**document)
        except (OSError, ValueError, KeyError, TypeError):
            shutil.rmtree(folder, ignore_errors=True)  # damaged: run it again
            return None

    def remove_if_empty(self) -> None:
        """Forget a run of which no trial has ended."""
        if not any(entry for entry in self._trials.glob("*") if not entry.name.startswith(".")):
            self.remove()

    def remove(self) -> None:
        """Forget the run, after its record is safe elsewhere."""
        shutil.rmtree(self.path, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
