"""What every test shares."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def loggers_stay_as_they_were() -> Iterator[None]:
    """A command sets how much Ottla says; the next test is not to be silenced by it."""
    log = logging.getLogger("ottla")
    before = log.level
    yield
    log.setLevel(before)
