"""A Chromium without a window, and pages of the console in it.

Nothing here waits for a time: a condition on the page is waited for, with a deadline.
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
    """How somebody looks at the page."""

    scheme: Literal["light", "dark"]
    width: int
    language: str = "en-GB"

    @property
    def name(self) -> str:
        return f"{self.scheme}-{self.width}"


WIDE, NARROW = Look("light", 1280), Look("dark", 360)
LOOKS = (WIDE, NARROW, Look("dark", 1280), Look("light", 360))


def executable() -> str:
    """Where Chromium is."""
    found = os.environ.get("OTTLA_CHROMIUM") or shutil.which("chromium")
    assert found is not None, "there is no chromium here; `make interop` installs it on Debian, as root"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with an empty profile. While it is there, this thread has no event loop to give to others."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, url: str, look: Look = WIDE) -> Iterator[Page]:
    """A page in a profile of its own; at its end nothing may have gone wrong in its scripts or been refused to them."""
    context = browser.new_context(
        color_scheme=look.scheme, viewport={"width": look.width, "height": 800}, locale=look.language
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(error.stack or str(error)))
    page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith((url, "blob:")) else wrong.append(asked.url))
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    # An answer that is no success is told on the page, as a sentence; the browser notes it, too.
    wrong = [text for text in wrong if not text.startswith("Failed to load resource")]
    assert not wrong, "\n".join(wrong)  # said here: pytest rewrites the asserts of tests alone


def audited(page: Page) -> list[str]:
    """What a reader of this page would stumble over."""
    found: Any = page.evaluate(AUDIT)
    return list(found)
