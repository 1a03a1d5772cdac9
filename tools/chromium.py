"""Headless Chromium, for tests, benchmarks and pictures of the console's pages.

Callers wait for a condition on the page, with a deadline; no function sleeps.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 60_000.0
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AUDIT = (Path(__file__).parent / "page_audit.js").read_text(encoding="utf-8")


class Look(NamedTuple):
    """The colour scheme, width and language that a page is shown with."""

    scheme: Literal["light", "dark"]
    width: int
    language: str = "en-GB"

    @property
    def name(self) -> str:
        return f"{self.scheme}-{self.width}"


WIDE, NARROW = Look("light", 1280), Look("dark", 360)
LOOKS = (WIDE, NARROW, Look("dark", 1280), Look("light", 360))


def executable() -> str:
    """Return the path of Chromium."""
    found = os.environ.get("OTTLA_CHROMIUM") or shutil.which("chromium")
    assert found is not None, (
        "chromium not found: run `make interop` as root on Debian, or set OTTLA_CHROMIUM to its path"
    )
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser with an empty profile. Playwright occupies this thread's event loop meanwhile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, url: str, look: Look = WIDE) -> Iterator[Page]:
    """Open a page in a profile of its own. At the end, fail if a script raised an error or sent a request elsewhere."""
    context = browser.new_context(
        color_scheme=look.scheme, viewport={"width": look.width, "height": 800}, locale=look.language
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(error.stack or str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith((url, "blob:")) else wrong.append(request.url))
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    # The page shows an unsuccessful response as a sentence; the browser logs it as well.
    wrong = [text for text in wrong if not text.startswith("Failed to load resource")]
    assert not wrong, "\n".join(wrong)  # with a message: pytest rewrites asserts only in tests


def audited(page: Page) -> list[str]:
    """Return the accessibility and layout problems of a page."""
    found: Any = page.evaluate(AUDIT)
    return list(found)
