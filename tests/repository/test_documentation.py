"""The documentation agrees with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.config.test_read_settings import Settings
from tools.protocol_tables import apis, codes, errors
from tools.readme_sections import section
from tools.settings_tables import on_page_markdown, table

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
BAR = re.compile(r"`[^`]*\\\|[^`]*`")
PATH = re.compile(r"`((?:src|tests|docs|tools|benchmarks|examples|interop|rivals)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_target_of_a_link_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in PATH.findall(text) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_in_a_table_has_no_bar(page: Path) -> None:
    """GitHub requires a backslash before a bar, which the site then displays."""
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert [row for row in rows if BAR.search(row)] == []


def test_the_architecture_names_every_part_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE))
    assert named == {folder.name for folder in (ROOT / "src" / "ottla").iterdir() if (folder / "__init__.py").exists()}


def test_settings_become_a_table_with_type_default_bounds_and_prose() -> None:
    rows = table(Settings).splitlines()
    assert "| `linger.ms` | whole number from 0 | `5` | How long a batch waits for company before it is sent. |" in rows
    assert "| `acks` | one of `0`, `1`, `all` | `all` |  |" in rows
    assert "| `bootstrap.servers` | list | required | Where to begin. |" in rows


def test_a_page_has_markers_for_its_tables() -> None:
    page = on_page_markdown("before\n{{ settings tests.config.test_read_settings.Common }}\nafter")
    assert page.startswith("before\n| setting |")
    assert page.endswith("|\n\nafter")


def test_the_protocol_becomes_tables() -> None:
    assert "| 1 | Fetch | 4–18 | brokers |" in apis().splitlines()
    assert "| 78 | ShareFetch | 1–2 | brokers |" in apis().splitlines()
    assert "| 88 | StreamsGroupHeartbeat | 0–1 | brokers |" in apis().splitlines()
    assert "| 3 | `UNKNOWN_TOPIC_OR_PARTITION` | yes |" in codes().splitlines()
    assert (
        "| `BufferExhaustedError` | `KafkaTimeoutError` | `buffer.memory` stayed full for `max.block.ms`. |" in errors()
    )


def pages_of(entry: Any) -> list[str]:
    """Return the pages of a part of the site's navigation, in order."""
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for part in inner for page in pages_of(part)]


def test_the_site_links_to_every_page_and_to_decisions_last() -> None:
    pages = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(pages) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    decisions = [page.startswith("decisions/") for page in pages]
    assert decisions == sorted(decisions)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, as built by `make docs`."""
    folder: Path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.house
@pytest.mark.xdist_group("site")
def test_no_page_of_the_site_shows_markup_as_text(site: Path) -> None:
    outside = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)
    texts = {
        str(page.relative_to(site)): outside.sub("", page.read_text(encoding="utf-8")) for page in site.rglob("*.html")
    }
    assert {name for name, text in texts.items() if re.search(r"```|===|\{\{ ", text)} == set()
    assert 'class="tabbed-labels"' in texts["index.html"]


@pytest.mark.house
@pytest.mark.xdist_group("site")
def test_a_link_of_the_site_refers_to_one_of_its_files_without_a_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # which a server shows anywhere
            continue
        links = re.findall(r'(?:href|src)="?([^"#?\s>]+)', page.read_text(encoding="utf-8"))
        inside = [link for link in links if not re.match(r"\w+:|//", link)]
        assert [link for link in inside if not (page.parent / link).resolve().is_file()] == [], page.name


def test_a_page_includes_a_section_of_the_readme_with_links_for_docs() -> None:
    text = "# Ottla\n\n## First\n\nSee [this](docs/durability.md).\n\n## Second\n\nMore.\n"
    assert section(text, "First") == "See [this](durability.md)."


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    places = [*PAGES, ROOT / ".ci" / "run", *(ROOT / ".github").rglob("*.yml")]
    command = re.compile(r"(?:`|^|run: |step )make ([a-z]+)", re.MULTILINE)
    named = {name for place in places for name in command.findall(place.read_text(encoding="utf-8"))}
    assert named - targets == set()
