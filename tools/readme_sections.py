"""Puts README into the documentation: `{{ readme Sixty seconds }}` becomes that section of it (a mkdocs hook)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
PLACE = re.compile(r"\{\{ readme ([^}]+) \}\}")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return PLACE.sub(lambda found: section(README.read_text(encoding="utf-8"), found[1]), markdown)


def section(text: str, heading: str) -> str:
    """Return the text under `heading`, with links relative to `docs`."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found[heading].strip().replace("](docs/", "](")
