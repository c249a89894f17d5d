"""Make the reference set again from a results tree: `python -m db.importers.reference.build TREE [RELEASE]`.

Left out are copies of one run in folders of other scenarios: they say nothing new.
"""

from __future__ import annotations

import sys
from pathlib import Path

from db.importers.mlperf.reading import read_tree
from db.importers.reference import FILE
from harness.documents import write_run
from harness.judgement import flags as flag_codes
from harness.records import Run


def build(tree: Path, release: str) -> list[Run]:
    """The runs of a tree that belong into the reference set. Raises ValueError when a file of the tree cannot be used."""
    found = read_tree(tree, release)
    if found.problems:
        raise ValueError("\n".join(found.problems))
    return [
        run
        for run in found.runs
        if all(flag.code != flag_codes.SCENARIO_INFERRED for flag in run.measurements[0].flags)
    ]


def written(runs: list[Run]) -> str:
    """The file's text: a JSON list with one record a line, so that a change shows as changed lines."""
    return "[\n" + ",\n".join(write_run(run).decode("utf-8") for run in runs) + "\n]\n"


if __name__ == "__main__":
    if len(sys.argv) not in {2, 3}:
        sys.exit("Usage: python -m db.importers.reference.build TREE [RELEASE]")
    records = build(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else "v3.0")
    FILE.write_text(written(records), encoding="utf-8")
    print(f"{FILE}: {len(records)} results")
