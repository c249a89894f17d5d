"""How numbers and foreign text are written: three significant figures, units beside them, markdown taken at its word."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.judgement.side_by_side import SideBySide
    from harness.judgement.spread import Spread

LARGEST = 1e300  # whole numbers of a record have no end, and sums of the largest others are infinite
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")
_LINES = re.compile(r"[\r\n\t\x00-\x1f\x7f]+")


def significant(value: float, figures: int = 3) -> float:
    """Round to significant figures: 0.476417 -> 0.476, 38062.3 -> 38100."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, figures - 1 - math.floor(math.log10(abs(value))))


def number(value: float | None, missing: str = "") -> str:
    """Three significant figures, never scientific between 1e-4 and 1e9, thousands set off: "38,100", "0.476"."""
    if value is None:
        return missing
    if not abs(value) < LARGEST:
        return "too large a number"
    rounded = significant(value)
    if rounded == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -4 <= magnitude < 9:
        return f"{rounded:.2e}"
    return f"{rounded:,.{max(0, 2 - magnitude)}f}"


def ratio(value: float | None) -> str:
    """A ratio to the baseline: "1.93 ×", on one line; two decimals would hide what is far below one."""
    return "" if value is None else f"{number(value)}\u00a0×"


def ratio_words(value: float | None, judged: SideBySide | None) -> str:
    """A ratio with its interval: "0.757 × (0.735 to 0.781)"; what shows no difference says so.

    A ratio of exactly one is that of the baseline to itself, of which there is nothing to say.
    """
    text = ratio(value)
    interval = judged.ratio if judged is not None else None
    if not text or value == 1 or interval is None or interval.low is None or interval.high is None or judged is None:
        return text
    same = ", no difference shown" if judged.difference == "not_shown" else ""
    return f"{text} ({number(interval.low)} to {number(interval.high)}){same}"


def when(moment: datetime | None) -> str:
    """A time in UTC, to the minute."""
    if moment is None:
        return ""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def plain(text: object) -> str:
    """Text of a device, a file or a person for a place that reads markdown: shown as it is, in one line, never as markup."""
    return _MARKDOWN.sub(r"\\\1", _LINES.sub(" ", str(text)))


def bounds(spread: Spread) -> str:
    """What stands beside a number: "60.1 to 62.4" (a 95 % interval over trials), "range 59.0 to 64.0", or nothing."""
    if spread.low is None or spread.high is None:
        return ""
    words = f"{number(spread.low)} to {number(spread.high)}"
    return {"interval": words, "range": f"range {words}", "within_one": f"one trial, {words}"}.get(spread.kind, "")


def markdown_cell(text: object) -> str:
    """Text for a cell of a Markdown file that people also read as text: only what would end the cell or become markup."""
    line = _LINES.sub(" ", str(text)).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", line)


def spreadsheet_safe(text: str) -> str:
    """Text for a CSV cell: what a spreadsheet would run as a formula begins with an apostrophe instead."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
