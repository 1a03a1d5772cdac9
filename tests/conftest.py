"""What every test shares."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "behaviour(id): this test proves that line of docs/behaviours.md")
