"""Reading MLPerf's accuracy.txt, which holds the number between lines of other text. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal

from harness.errors import RecordError

_TOP1 = re.compile(
    r"^accuracy=(?P<percent>\d{1,3}(?:\.\d+)?)%, good=(?P<good>\d+), total=(?P<total>\d+)\s*$", re.MULTILINE
)
_JSON_LINE = re.compile(r"^\{.*\}\s*$", re.MULTILINE)


@dataclass(frozen=True)
class AccuracyFile:
    """The quality as printed, turned from percent into a share of one without another rounding."""

    metric: str  # "top1", "f1"
    value: float
    printed: str
    samples: int | None = None
    details: dict[str, float] = field(default_factory=dict)


def read_accuracy(text: str) -> AccuracyFile | None:
    """Find the one number of an accuracy file; None where it holds none of a kind that is known here.

    Raises RecordError, without the file's name, where two numbers differ or one contradicts itself.
    """
    found = [_top1(match) for match in _TOP1.finditer(text)]
    for match in _JSON_LINE.finditer(text):
        squad = _squad(match.group())
        if squad is not None:
            found.append(squad)
    if not found:
        return None
    if any(other != found[0] for other in found):
        raise RecordError("it holds two accuracies that differ")
    return found[0]


def _top1(match: re.Match[str]) -> AccuracyFile:
    good, total = int(match["good"][:18]), int(match["total"][:18])
    percent = Decimal(match["percent"])
    # The percentage must be the quotient as printed: a hand-edited line must not become a fact.
    if total == 0 or good > total or abs(percent - Decimal(100) * good / total) > Decimal("0.001"):
        raise RecordError(f"its line {match.group().strip()!r} contradicts itself")
    return AccuracyFile("top1", float(percent / 100), f"{match['percent']} %", total)


def _squad(line: str) -> AccuracyFile | None:
    try:
        document = json.loads(line, parse_float=Decimal)
    except ValueError:
        return None
    if not isinstance(document, dict) or not {"f1", "exact_match"} <= document.keys():
        return None
    f1, exact = document["f1"], document["exact_match"]
    for value in (f1, exact):
        if not isinstance(value, (Decimal, int)) or isinstance(value, bool) or not 0 <= value <= 100:
            raise RecordError(f"its line {line.strip()!r} holds no percentages")
    return AccuracyFile("f1", float(Decimal(f1) / 100), f"{f1} %", None, {"exact_match": float(Decimal(exact) / 100)})
