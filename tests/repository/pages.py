"""Run a page of the documentation like its reader: write files, run commands and programs, compare output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.repository.readme import BLOCK, ROOT, Reader

ANY_LINES = r"(?:.*\n)?"


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return the blocks of a page of docs/ in order: language and text."""
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def read_page(page: str, folder: Path, python: str) -> None:
    """Run all blocks of `page`. A `text` block is the output of the previous block, and `…` in it matches anything."""
    said = ""
    with Reader(folder, python) as reader:
        for language, block in blocks_of(page):
            match language:
                case "sh":
                    said = reader.run_shell(block)
                case "python":
                    said = reader.run_program(block)
                case "yaml":
                    write(block.replace("127.0.0.1:9092", reader.servers), folder)
                case "":
                    continue  # A drawing.
                case "text":
                    assert pattern(block).search(said), f"{page}: not\n{block}\nbut\n{said}"
                case _:
                    raise AssertionError(
                        f"{page}: a block of {language!r} is not run by anything: say sh, python, yaml or text"
                    )


def write(block: str, folder: Path) -> None:
    """Write a file. Its name is in the first line of the block."""
    name = re.match(r"# (\S+)\n", block)
    assert name, block
    (folder / name[1]).write_text(block, encoding="utf-8")


def pattern(block: str) -> re.Pattern[str]:
    """Return the pattern for the output: `…` matches anything, and as a line of its own any number of lines."""
    lines = (
        ANY_LINES if line == "…\n" else ".*".join(map(re.escape, line.split("…"))) for line in block.splitlines(True)
    )
    return re.compile("".join(lines), re.DOTALL)
