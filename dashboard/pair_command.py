"""`weigh compare A B`: two systems, runs or measurements beside each other, one sentence for each metric, with reasons.

No Streamlit, no pandas. What is printed comes from `pair_document`, which is also what `--json` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import NotDone, UsageError
from harness.judgement.comparison import parameters_of, scenario_title
from harness.judgement.figures import batch_of
from harness.judgement.pairing import Pair, Pairs, paired
from harness.judgement.side_by_side import metrics_of, sentence, side_by_side
from harness.judgement.systems import grouped, matching, one_matching, systems_of
from harness.judgement.trust import trust_of_row

if TYPE_CHECKING:
    from db.queries import ResultRow
    from db.store import Store
    from harness.judgement.comparable import ComparableRow

LEAST_OF_AN_ID = 6  # characters; fewer would also be words
HEXADECIMAL = frozenset("0123456789abcdef-")


def selected(store: Store, text: str, rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The measurements that `text` names: a run or a measurement by its id or the beginning of it, else systems by words.

    Raises UsageError where it names nothing, or an id that several begin with.
    """
    from db.queries import identified, results

    if len(text) >= LEAST_OF_AN_ID and set(text.lower()) <= HEXADECIMAL:
        found = identified(store.engine, text.lower())
        if len(found) > 1:
            raise UsageError(f"Several ids begin with {text!r}.", "Give more of it, or the whole id.")
        if found:
            return results(store.engine, found[0])
    systems = systems_of(rows)
    named = {system.id for system in matching(systems, text)}
    if not named:
        one_matching(systems, text)  # says what there is
    by_id = {row.measurement_id: row for row in rows}
    return [
        by_id[row.measurement_id] for identity, members in grouped(rows).items() if identity in named for row in members
    ]


def pair_document(pairs: Pairs, environments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """All pairs with their metrics, verdicts and sentences, what has no partner, and what differs in the environments."""
    return {
        "pairs": [_pair(pair) for pair in pairs.pairs],
        "without_partner": {
            "a": [_side(row) for row in pairs.only_a],
            "b": [_side(row) for row in pairs.only_b],
        },
        "environment_differences": _environment(pairs.pairs, environments),
    }


def comparable(document: Mapping[str, Any]) -> bool:
    """Whether at least one metric of one pair may be compared."""
    return any(metric["verdict"] != "not_comparable" for pair in document["pairs"] for metric in pair["metrics"])


def pair_lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads: for each pair the two sides, a sentence for each metric, its caveats; then what else differs."""
    lines: list[str] = []
    for pair in document["pairs"]:
        lines += [f"{pair['workload']}, {pair['what']}"]
        lines += [f"  {name}: {_side_line(pair[name.lower()])}" for name in ("A", "B")]
        lines += _judged_lines(pair)
        lines.append("")
    for name in ("a", "b"):
        alone = document["without_partner"][name]
        if alone:
            lines.append(f"Without a partner on the other side: {len(alone)} of {name.upper()}'s measurements.")
            lines += [f"  {side['workload']}, {side['what']}, {side['system']}" for side in alone]
    for part in document["environment_differences"]:
        lines.append(f"Environments: here is A ({part['a_device']}), there is B ({part['b_device']}).")
        lines += [f"  {field['words']}" for field in part["fields"]] or ["  Nothing that is recorded differs."]
    return lines


def _judged_lines(pair: Mapping[str, Any]) -> list[str]:
    """The sentences with their reasons; what holds for every metric is said once."""
    if all(metric["verdict"] == "not_comparable" for metric in pair["metrics"]):
        shared = [text for text in pair["contract"] if all(text in metric["contract"] for metric in pair["metrics"])]
        rest = [metric["sentence"] for metric in pair["metrics"] if not set(shared) & set(metric["contract"])]
        return ["  A and B are not comparable in any metric:", *(f"    {text}" for text in shared), *rest]
    lines = [f"  {metric['sentence']}" for metric in pair["metrics"]]
    lines += [f"    caveat: {text}" for text in pair["caveats"]]
    if pair["implementation"]:
        differing = "; ".join(text.removeprefix("Differs in ").rstrip(".") for text in pair["implementation"])
        lines.append(f"    what is compared differs in {differing}")
    return lines


def run(a: str, b: str, rows: Sequence[ResultRow], store: Store) -> dict[str, Any]:
    """Select, pair and judge. Raises UsageError, NotDone."""
    from db.queries import environments

    a_rows, b_rows = selected(store, a, rows), selected(store, b, rows)
    pairs = paired(a_rows, b_rows)
    if not pairs.pairs:
        raise NotDone(
            f"{a!r} and {b!r} have no scenario of one workload family in common, so nothing can stand side by side.",
            "`weigh results` lists what each has.",
        )
    digests = [side.environment_digest for pair in pairs.pairs for side in (pair.a, pair.b)]
    return pair_document(pairs, environments(store.engine, digests))


def as_json(document: Mapping[str, Any]) -> str:
    """The document as text."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _pair(pair: Pair) -> dict[str, Any]:
    a, b = pair.a, pair.b
    compared = [side_by_side(a, b, metric) for metric in metrics_of(a, b)]
    metrics = [{**item.as_document(), "sentence": sentence(item, a if a.status == "ok" else b)} for item in compared]

    def shared(part: str) -> list[str]:
        return list(dict.fromkeys(text for metric in metrics for text in metric[part]))

    return {
        "workload": a.workload_title or a.workload,
        "scenario": a.scenario,
        "what": _what(a),
        "a": _side(a),
        "b": _side(b),
        "metrics": metrics,
        "contract": shared("contract"),
        "caveats": shared("caveats"),
        "implementation": shared("implementation"),
    }


def _side(row: ComparableRow) -> dict[str, Any]:
    """One side: which system, which run, how far to trust it."""
    return {
        "system": systems_of([row])[0].label,
        "workload": row.workload_title or row.workload,
        "what": _what(row),
        "device": row.device,
        "device_uuid": row.device_uuid,
        "run_id": row.run_id,
        "measurement_id": row.measurement_id,
        "started_at": row.started_at.isoformat(),
        "status": row.status,
        "requested_precision": row.requested_precision,
        "effective_precision": row.effective_precision,
        "environment_digest": row.environment_digest,
        "trust": trust_of_row(row).as_document(),
    }


def _what(row: ComparableRow) -> str:
    parts = [scenario_title(row.scenario).lower()]
    parts += [f"{name.replace('_', ' ')} {value}" for name, value in parameters_of(row).items()]
    batch = batch_of(row)
    return ", ".join([*parts, "batch not known" if batch is None else f"batch {batch}"])


def _side_line(side: Mapping[str, Any]) -> str:
    asked, ran = side["requested_precision"], side["effective_precision"] or "not known"
    precision = f"precision {ran}" if asked in (ran, None, "unknown") else f"asked for {asked}, ran {ran}"
    return (
        f"{side['system']} on {side['device']}, {precision}, run {side['run_id'][:8]} of {side['started_at'][:10]}, "
        f"trust {side['trust']['grade']}"
    )


def _environment(pairs: Sequence[Pair], environments: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Field by field what differs between the environments of the two sides, once for each pair of environments."""
    from harness.judgement.environment_difference import explain

    found: dict[tuple[str, str], dict[str, Any]] = {}
    for pair in pairs:
        key = (pair.a.environment_digest, pair.b.environment_digest)
        if key in found:
            continue
        here, there = environments.get(key[0]), environments.get(key[1])
        fields = explain(here, there) if here is not None and there is not None else ()
        found[key] = {
            "a_device": pair.a.device,
            "b_device": pair.b.device,
            "a": key[0],
            "b": key[1],
            "fields": [{**vars(field), "words": field.words} for field in fields],
        }
    return list(found.values())
