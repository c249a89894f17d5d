"""The regression rule applied to a store: which devices became worse, in sentences and as a document."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from db.history import DeviceHistory, Pair, histories
from harness.judgement.regression import Change, Thresholds, judge
from harness.terminal import printable

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True)
class Checked:
    """Every device's newest run with the rule's answer for each of its cases."""

    devices: tuple[tuple[DeviceHistory, tuple[tuple[Pair, Change], ...]], ...]
    thresholds: Thresholds

    @property
    def regressions(self) -> int:
        """How many cases became worse."""
        return sum(change.verdict == "regression" for _, changes in self.devices for _, change in changes)

    def as_document(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "regressions": self.regressions,
            "thresholds": asdict(self.thresholds),
            "devices": [
                {
                    "device": history.device,
                    "device_uuid": history.device_uuid,
                    "run_id": history.run_id,
                    "started_at": history.started_at.isoformat(),
                    "earlier_runs": history.earlier_runs,
                    "cases": [
                        {
                            "case_key": pair.case_key,
                            "case": pair.label,
                            **asdict(change),
                            "newest": asdict(pair.newest),
                            "previous": asdict(pair.previous) if pair.previous else None,
                        }
                        for pair, change in changes
                    ],
                }
                for history, changes in self.devices
            ],
        }


def check_devices(engine: Engine, device: str | None, thresholds: Thresholds) -> Checked:
    """Judge the newest run of one device, or of all."""
    return Checked(
        tuple(
            (history, tuple((pair, judge(pair.newest, pair.previous, thresholds)) for pair in history.pairs))
            for history in histories(engine, device)
        ),
        thresholds,
    )


def report_lines(checked: Checked) -> list[str]:
    """What a person reads: regressions first and in full, the rest counted, and said where nothing could be compared."""
    if not checked.devices:
        return ["The store holds no measured run, so there is nothing to check. `weigh run quick` measures."]
    lines: list[str] = []
    for history, changes in checked.devices:
        head = f"{printable(history.device)}, run of {history.started_at:%Y-%m-%d %H:%M} UTC"
        count = {verdict: sum(change.verdict == verdict for _, change in changes) for verdict in _WORDS}
        compared = sum(count[verdict] for verdict in ("regression", "better", "same", "undecided"))
        if history.earlier_runs == 0:
            lines.append(f"{head}: nothing to compare with, it is this device's first run.")
            continue
        summary = ", ".join(f"{number} {_WORDS[verdict]}" for verdict, number in count.items() if number)
        lines.append(f"{head}: {summary or 'it holds no cases'}." + ("" if compared else " Nothing could be compared."))
        for wanted in ("regression", "undecided", "better"):
            for pair, change in changes:
                if change.verdict == wanted:
                    lines.append(f"  {_WORDS[wanted]}: {printable(pair.label)}: {printable(' '.join(change.reasons))}")
    return lines


_WORDS = {
    "regression": "worse",
    "better": "better",
    "same": "unchanged",
    "undecided": "undecided",
    "nothing_to_compare": "without an earlier measurement",
    "not_measured": "not measured this time",
}
