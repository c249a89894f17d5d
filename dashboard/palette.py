"""One colour and shape per hardware model, the same on every page, told apart by colour-blind readers too.

Six of the eight colours of Okabe and Ito ("Color Universal Design", 2008; their yellow and black are not legible on both of
our backgrounds), times four marker shapes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond")
ACCENT = "#0072B2"
LINE = "#D55E00"  # limits and percentiles across a chart
BASELINE = "#8A8F98"


@dataclass(frozen=True)
class Marker:
    """How one hardware model looks in every chart."""

    colour: str
    shape: str


def markers(hardware: Iterable[str]) -> dict[str, Marker]:
    """Give each hardware model its marker.

    The place is taken from the name's digest, so that it does not depend on what else is shown; only where two names fall
    on one place does the later in the alphabet move on. With more than 24 models markers repeat.
    """
    places = [Marker(colour, shape) for shape in SHAPES for colour in COLOURS]
    taken: dict[int, str] = {}
    chosen: dict[str, Marker] = {}
    for name in sorted(set(hardware)):
        colour = int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(COLOURS)
        tries = [(colour + step) % len(COLOURS) for step in range(len(COLOURS))]
        free = [place + row * len(COLOURS) for row in range(len(SHAPES)) for place in tries]
        place = next((candidate for candidate in free if candidate not in taken), free[0])
        taken[place] = name
        chosen[name] = places[place]
    return chosen
