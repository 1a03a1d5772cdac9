"""The documentation site, opened from a folder in a real Chromium without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tools.chromium import PATIENCE_MS, chromium

ROOT = Path(__file__).parent.parent
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the newly built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


def test_the_search_works_from_a_folder_and_loads_nothing_from_the_network(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").press_sequentially("rebalance")
        expect(page.locator(".md-search-result__item").first).to_be_visible()
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_no_page_of_the_site_refers_to_a_remote_script_or_style(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    wrong = [
        f"{page.relative_to(site)}: {line.strip()}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if ("<script" in line and 'src="http' in line) or ("<link" in line and 'rel="stylesheet" href="http' in line)
    ]
    assert wrong == []
