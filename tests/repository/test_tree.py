"""What holds for every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MACHINE_PATH = re.compile(r"(?<![\w./-])/(work|root|home/\w+|Users/\w+|opt/wheels)/")
MOST_LINES = 500
MOST_LINES_OF_A_FUNCTION = 60


def text_files() -> list[Path]:
    """The files that git keeps, pictures and the like left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:8192]]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [name(file) for file in text_files() if MACHINE_PATH.search(file.read_text(encoding="utf-8"))]
    assert found == []


def test_no_source_leaves_work_for_later() -> None:
    later = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|raise NotImplemented" r"Error")
    found = [name(file) for file in text_files() if file.suffix == ".py" and later.search(file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_a_module_says_what_is_in_it(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))), "a module docstring says what is here"


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_a_module_is_short_enough_to_be_one_noun(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("file", SOURCES, ids=name)
def test_a_function_fits_a_screen(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [f.name for f in functions if (f.end_lineno or f.lineno) - f.lineno >= MOST_LINES_OF_A_FUNCTION]
    assert long == []


def test_no_test_lets_time_pass() -> None:
    """They wait for something to be so (`tests/patience.py`), or have a clock of their own."""
    tests = [file for file in text_files() if file.suffix == ".py" and name(file).startswith("tests/")]
    found = [f"{name(file)}:{line}" for file in tests for line in sleeps(ast.parse(file.read_text("utf-8")))]
    assert [each for each in found if not each.startswith("tests/patience.py")] == []


def sleeps(tree: ast.AST) -> list[int]:
    """Lines that sleep, or wait for what nobody will say; not those that let others have their turn, `sleep(0)`."""
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


def test_no_package_is_a_promise() -> None:
    promises = [
        name(file)
        for file in SOURCES
        if file.name == "__init__.py"
        and len(ast.parse(file.read_text(encoding="utf-8")).body) <= 1
        and not any(beside != file for beside in file.parent.rglob("*.py"))
    ]
    assert promises == []
