"""The tutorial: its blocks are run as a reader would run them, and print what it says that they print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.repository.pages import read_page


@pytest.mark.parametrize("chapter", ["produce-and-consume", "groups", "pipeline"])
def test_a_chapter_can_be_followed(chapter: str, tmp_path: Path) -> None:
    read_page(f"tutorial/{chapter}.md", tmp_path, sys.executable)
