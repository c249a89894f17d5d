"""Errors in files that people write name the line where the wrong thing stands."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError, UsageError
from harness.toml_files import TomlFile, read_toml

TEXT = """# names that come twice
name = "x"

[[workload]]
name = "a"
parameters = {
  size = 1,
  mean = [1,
    2],
}

[[workload]]
"name" = "b"
text = \"\"\"
name = "not a key"
\"\"\"
deep.er = 1
"""


@pytest.fixture
def document(tmp_path: Path) -> TomlFile:
    path = tmp_path / "suite.toml"
    path.write_text(TEXT.replace("{\n  size = 1,\n  mean = [1,\n    2],\n}", "{ size = 1, mean = [1, 2] }"))
    return read_toml(path)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 2),
        (("workload", 0), 4),
        (("workload", 0, "name"), 5),
        (("workload", 0, "parameters", "mean"), 6),
        (("workload", 1, "name"), 9),
        (("workload", 1, "text"), 10),
        (("workload", 1, "deep", "er"), 13),
        (("workload", 1, "absent"), 8),
        (("absent",), None),
    ],
)
def test_the_line_of_a_key(document: TomlFile, key: tuple[str | int, ...], line: int | None) -> None:
    assert document.line_of(*key) == line


def test_an_error_names_file_line_and_what_is_allowed(document: TomlFile) -> None:
    error = document.error(("workload", 1, "name"), "that is taken.", ["c", "d"])
    assert str(error) == f"{document.path}, line 9: that is taken. Allowed: c, d."


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text('name = "x"\nversion = \n')
    with pytest.raises(SuiteError, match=r"broken\.toml is not valid TOML: .*line 2"):
        read_toml(path)


def test_what_is_no_text_or_too_large_or_absent_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_toml(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not a text file"):
        read_toml(path)
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(UsageError, match="larger than 256 KiB"):
        read_toml(path)


@given(st.text(max_size=300))
def test_any_text_is_a_table_or_an_error_never_something_else(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_text(text, encoding="utf-8", errors="replace")
        with contextlib.suppress(UsageError):
            assert isinstance(read_toml(path).data, dict)
