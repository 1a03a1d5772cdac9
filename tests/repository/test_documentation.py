"""The documentation says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.config.test_read_settings import Settings
from tools.settings_tables import on_page_markdown, table

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
PATH = re.compile(r"`((?:src|tests|docs|tools|benchmarks|examples|interop|rivals)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_is_named_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in PATH.findall(text) if not (ROOT / name).exists()] == []


def test_the_architecture_names_every_part_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE))
    assert named == {folder.name for folder in (ROOT / "src" / "ottla").iterdir() if (folder / "__init__.py").exists()}


def test_settings_become_a_table_with_type_default_bounds_and_prose() -> None:
    rows = table(Settings).splitlines()
    assert "| `linger.ms` | whole number from 0 | `5` | How long a batch waits for company before it is sent. |" in rows
    assert "| `acks` | one of `0`, `1`, `all` | `all` |  |" in rows
    assert "| `bootstrap.servers` | list | required | Where to begin. |" in rows


def test_a_page_says_where_its_tables_go() -> None:
    page = on_page_markdown("before\n{{ settings tests.config.test_read_settings.Common }}\nafter")
    assert page.startswith("before\n| setting |")
    assert page.endswith("|\n\nafter")


def test_the_site_leads_to_every_decision() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs" / "decisions").glob("0*.md") if page.name not in site] == []
