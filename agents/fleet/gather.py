"""Which cached files a run on a device needs: fetched and built here, so that the device needs no converter and no apt.

The plan's cases are built here exactly as the device will build them, and the cache says which of its files that touched.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.fleet.order import Order
from harness.folders import cache_dir

_one_at_a_time = threading.Lock()  # what the cache has touched is known per process, not per thread


@dataclass(frozen=True)
class Needed:
    """Files of this host's cache, relative to it, and why others could not be had."""

    files: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Gatherer:
    """Gathers for many devices; devices that can do the same are answered from memory."""

    order: Order
    _known: dict[str, Needed] = field(default_factory=dict)

    def needed(self, answer: Mapping[str, Any], say: Callable[[str], None]) -> Needed:
        """Return what a device needs that answered so (`agents.device.needs`). Raises ModelError, UsageError."""
        places = [(str(item["backend"]), str(item["target"])) for item in answer["places"] if item["works"] is True]
        key = json.dumps([sorted(places), answer["processors"]])
        with _one_at_a_time:
            if key not in self._known:
                say("fetching and building its models here")
                _cases(self.order, places, int(answer["processors"]), offline=self.order.offline)
                # Again, from the cache alone: now only finished files are touched, not what they were built from.
                from harness.models.cache import forget_used_files, used_files

                forget_used_files()
                cases = _cases(self.order, places, int(answer["processors"]), offline=True)
                self._known[key] = _listed(cases, used_files())
            return self._known[key]


def _cases(order: Order, places: Sequence[tuple[str, str]], processors: int, offline: bool) -> list[Any]:
    import backends
    from backends.base import TargetStatus
    from harness.configuration import load_configuration
    from harness.models.store import ModelStore
    from harness.runner.case_builder import CaseBuilder
    from harness.runner.plan import Selection, expand
    from harness.suites import suite_from
    from harness.suites.reader import known_workloads

    suite = suite_from(order.document)
    selection = Selection(backends=order.backends, targets=order.targets, workloads=order.workloads)
    targets = {name: backends.create(name).targets() for name in backends.BACKENDS}
    intents = expand(suite, known_workloads(suite), selection, targets, processors)
    cache = cache_dir()
    store = ModelStore(cache, offline)
    builder = CaseBuilder(str(uuid.uuid4()), suite, store, cache, offline, load_configuration())
    return [
        builder.build(
            intent,
            TargetStatus(intent.backend, intent.target, (intent.backend, intent.target) in places),
            backends.create(intent.backend).formats,
        )
        for intent in intents
    ]


def _listed(cases: Sequence[Any], used: Sequence[Path]) -> Needed:
    cache = cache_dir()
    files = {path for path in used if path.is_relative_to(cache)}
    digests = {f"{path.parent.name}{path.name.partition('.')[0]}" for path in files}
    for manifest in (cache / "built").glob("*/*.json"):
        try:
            built = json.loads(manifest.read_bytes()).get("sha256")
        except (OSError, ValueError, AttributeError):
            continue
        if built in digests:
            files.add(manifest)
    datasets = cache / "datasets"
    samples = {Path(name) for case in cases for trial in case.trials for s in trial.job.samples for name in s.files}
    for folder in {datasets / path.relative_to(datasets).parts[0] for path in samples if path.is_relative_to(datasets)}:
        files |= {path for path in folder.rglob("*") if path.is_file()}
    missing = {f"{case.intent.workload.name}: {case.reason}": None for case in cases if case.status == "failed"}
    return Needed(tuple(sorted(path.relative_to(cache).as_posix() for path in files)), tuple(missing))
