"""Two environments, field by field: what differs, in words, most important first. Pure.

Lists have no order here: what runs on both sides is left out, the rest is paired where both sides have as many of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.canonical import canonical_json
from harness.judgement.environment_fields import FIELDS, IGNORED, LEAST, UNKNOWN

Kind = Literal["machine", "configuration", "conditions"]
KINDS: tuple[Kind, ...] = ("machine", "configuration", "conditions")
NOT_TOLD = "not told"
LONG = 80  # characters of a value in a sentence


@dataclass(frozen=True)
class FieldDifference:
    """One field that differs. None on a side: that side does not tell it, or has none."""

    path: str  # "configuration.power.policies.governor"
    here: Any
    there: Any
    kind: Kind
    name: str  # "governor"
    matters: str  # a sentence

    @property
    def words(self) -> str:
        """The difference as people say it: "governor: performance here, powersave there"."""
        if isinstance(self.here, list) and isinstance(self.there, list):
            sides = (
                (f"only {side}", values) for side, values in (("here", self.here), ("there", self.there)) if values
            )
            return f"{self.name}: " + "; ".join(f"{side} {_said(values)}" for side, values in sides)
        return f"{self.name}: {_said(self.here)} here, {_said(self.there)} there"


def explain(here: Mapping[str, Any], there: Mapping[str, Any]) -> tuple[FieldDifference, ...]:
    """Return what differs between two environments, each with `machine`, `configuration` and, if known, conditions.

    The order is that of `environment_fields.FIELDS`; within one of these by path. Conditions that differ by less than is
    worth a word are left out.
    """
    found: list[tuple[int, FieldDifference]] = []
    for kind in KINDS:
        for path, one, other in _differences(kind, here.get(kind) or {}, there.get(kind) or {}):
            if kind == "conditions" and _too_small(path, one, other):
                continue
            rank, name, matters = _field(path)
            found.append((rank, FieldDifference(path, one, other, kind, name, matters)))
    found.sort(key=lambda item: (item[0], item[1].path))
    return tuple(difference for _, difference in found)


def _differences(path: str, here: Any, there: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in sorted({*here, *there}):
            yield from _differences(f"{path}.{key}", here.get(key), there.get(key))
    elif isinstance(here, Mapping) and there is None:
        for key in sorted(here):
            yield from _differences(f"{path}.{key}", here[key], None)
    elif isinstance(there, Mapping) and here is None:
        for key in sorted(there):
            yield from _differences(f"{path}.{key}", None, there[key])
    elif _is_list(here) and _is_list(there):
        mine, theirs = _without_common(here, there)
        if not mine and not theirs:
            return
        if len(mine) == len(theirs) and all(isinstance(item, Mapping) for item in (*mine, *theirs)):
            for one, other in zip(mine, theirs, strict=True):
                yield from _differences(path, one, other)
        else:
            yield path, mine, theirs
    elif here != there:
        yield path, here, there


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _without_common(here: Sequence[Any], there: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return what each side has more of, in one order."""
    sides = [
        sorted(((canonical_json(item), item) for item in side), key=lambda pair: pair[0]) for side in (here, there)
    ]
    common = Counter(key for key, _ in sides[0]) & Counter(key for key, _ in sides[1])
    return _beyond(sides[0], Counter(common)), _beyond(sides[1], Counter(common))


def _beyond(side: Sequence[tuple[bytes, Any]], common: Counter[bytes]) -> list[Any]:
    found = []
    for key, item in side:
        if common[key] > 0:
            common[key] -= 1
        else:
            found.append(item)
    return found


def _field(path: str) -> tuple[int, str, str]:
    for rank, kind in enumerate(FIELDS):
        found = kind.pattern.fullmatch(path)
        if found:
            groups = [group.replace("_", " ").replace(".", " ") for group in found.groups()]
            return rank, kind.name.format(*groups), kind.matters
    return len(FIELDS), path.partition(".")[2].replace("_", " ").replace(".", " "), UNKNOWN


def _too_small(path: str, here: Any, there: Any) -> bool:
    if IGNORED.fullmatch(path):
        return True
    numbers = [value for value in (here, there) if isinstance(value, int | float)]
    if len(numbers) < 2:
        return False
    least = next((least for pattern, least in LEAST if pattern.fullmatch(path)), 0.0)
    return abs(numbers[0] - numbers[1]) < least


def _said(value: Any) -> str:
    if value is None:
        return NOT_TOLD
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        words = ", ".join(f"{key} {_said(item)}" for key, item in value.items())
    elif _is_list(value):
        words = ", ".join(_said(item) for item in value) or "none"
    else:
        words = str(value)
    return words if len(words) <= LONG else f"{words[: LONG - 3]}..."
