"""What the README and the docs tell a person to type exists: commands, options, links, examples."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def _shell_lines() -> list[tuple[str, list[str]]]:
    """Every `weigh ...` line of a shell block, as (page, words)."""
    found = []
    for page in PAGES:
        for block in re.findall(
            r"```(?:sh|bash|shell|console)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
        ):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.strip().removeprefix("$ "), comments=True)
                if words and Path(words[0]).name == "weigh":
                    found.append((page.name, words[1:]))
    return found


def test_there_are_commands_to_check() -> None:
    assert len(_shell_lines()) >= 20


@pytest.mark.parametrize(
    ("page", "words"), _shell_lines(), ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_a_command_in_the_docs_exists_with_its_options(page: str, words: list[str]) -> None:
    from typer.main import get_command

    import weigh as front

    command: Any = get_command(front.compose())
    for word in words:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert command.name != "weigh" or options, f"{page}: no command in {words}"
    assert options <= known, f"{page}: {sorted(options - known)} is no option of {command.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_tutorials_suite_can_be_read(tmp_path: Path) -> None:
    from harness.suites.reader import suite_from
    from harness.toml_files import read_toml

    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL) if "[[measure]]" in block)
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    assert suite_from(read_toml(path)).accuracy == ("our-classifier",)
