"""Rules for every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("tree")  # which is parsed once

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MACHINE_PATH = re.compile(r"(?<![\w./-])/(work|root|home/\w+|Users/\w+|opt/wheels)/")


def kept_files() -> list[Path]:
    """Return the files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def text_files() -> list[Path]:
    """Return the tracked text files, without pictures and other binary files."""
    return [file for file in kept_files() if file.is_file() and b"\0" not in file.read_bytes()[:8192]]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [name(file) for file in text_files() if MACHINE_PATH.search(file.read_text(encoding="utf-8"))]
    assert found == []


def test_no_file_is_a_link() -> None:
    """The target of a symbolic link exists on one machine only, or should have the name itself."""
    assert [name(path) for path in kept_files() if path.is_symlink()] == []


def test_no_source_leaves_work_for_later() -> None:
    later = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|raise NotImplemented" r"Error")
    found = [name(file) for file in text_files() if file.suffix == ".py" and later.search(file.read_text("utf-8"))]
    assert found == []


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_every_module_has_a_docstring() -> None:
    assert [name(file) for file in SOURCES if not ast.get_docstring(tree_of(file))] == []


def test_no_test_lets_time_pass() -> None:
    """Tests wait for a condition (`tests/patience.py`), or have a manual clock."""
    tests = [file for file in text_files() if file.suffix == ".py" and name(file).startswith("tests/")]
    maybe = [file for file in tests if re.search(r"sleep|Event\(", file.read_text("utf-8"))]
    found = [f"{name(file)}:{line}" for file in maybe for line in sleeps(tree_of(file))]
    assert [each for each in found if not each.startswith("tests/patience.py")] == []


def sleeps(tree: ast.AST) -> list[int]:
    """Return lines that sleep, or wait for an event that is never set.

    `sleep(0)`, which yields to other tasks, is allowed.
    """
    lines = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        match call:
            case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(value=0)]):
                continue
            case ast.Call(func=ast.Attribute(attr="sleep", value=ast.Name(id="time" | "asyncio"))):
                lines.append(call.lineno)
            case ast.Call(func=ast.Attribute(attr="wait", value=ast.Call(func=ast.Attribute(attr="Event"))), args=[_]):
                lines.append(call.lineno)
    return lines


def test_every_package_has_an_init_module() -> None:
    folders = {file.parent for file in SOURCES}
    assert [
        name(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists() and folder.name != "src"
    ] == []


def test_no_package_is_empty() -> None:
    promises = [
        name(file)
        for file in SOURCES
        if file.name == "__init__.py"
        and len(tree_of(file).body) <= 1
        and not any(beside != file for beside in file.parent.rglob("*.py"))
    ]
    assert promises == []


def imported_folders(folder: str) -> set[str]:
    """Return the top-level packages that the Python files of a folder import."""
    found: set[str] = set()
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
    return found


@pytest.mark.parametrize(
    ("folder", "users"),
    [
        ("interop", {"benchmarks"}),
        ("benchmarks", {"interop"}),
        ("rivals", {"interop", "benchmarks", "examples"}),
        ("tools", {"interop", "benchmarks", "examples"}),
    ],
)
def test_interop_and_benchmarks_share_only_rivals_and_tools(folder: str, users: set[str]) -> None:
    assert imported_folders(folder) & users == set()
