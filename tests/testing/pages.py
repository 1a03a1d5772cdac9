"""The code blocks of the pages on tests, as files of a test project."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent.parent
SETTINGS = re.compile(r"^```toml\n# pyproject\.toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
CONFTEST = "# conftest.py\n"
PRELUDE = "import pytest\nimport ottla\nfrom ottla.testing import assert_records\n\n\n"
"""The imports of the page's first block, which all blocks need."""


def blocks(page: str) -> list[str]:
    """Return the code blocks of a page of docs/ in their order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [dedent(block) for _, block in BLOCK.findall(text)]


def examples_of(page: str) -> list[str]:
    """Return the blocks that contain tests."""
    return [block for block in blocks(page) if "def test_" in block]


def conftests_of(page: str) -> list[str]:
    """Return the blocks for conftest.py."""
    return [block for block in blocks(page) if block.startswith(CONFTEST)]


def settings_of(page: str) -> str:
    """Return the block for pyproject.toml, by which pytest loads the plugin."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (block,) = SETTINGS.findall(text)
    return str(block)
