"""Documentation pages, tested block by block: each block runs as a reader would run it, and prints the shown output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.repository.pages import read_page

PAGES = ("tutorial/produce-and-consume", "tutorial/groups", "how-kafka-works", "migrating")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    read_page(f"{page}.md", tmp_path, sys.executable)


@pytest.mark.usefixtures("quick_drivers")
def test_the_page_of_pipelines_which_starts_spark_can_be_followed(tmp_path: Path) -> None:
    read_page("tutorial/pipeline.md", tmp_path, sys.executable)
