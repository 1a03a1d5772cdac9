"""What every test shares."""

from __future__ import annotations

import gc
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it starts in the background ignore Ctrl-C, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: who searches for garbage need not look through it (a tenth of the time)."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def loggers_stay_as_they_were() -> Iterator[None]:
    """A command sets how much Ottla says; the next test is not to be silenced by it."""
    before = {logger: logger.level for logger in ottla_loggers()}
    yield
    for logger in ottla_loggers():
        level = before.get(logger, logging.NOTSET)
        if logger.level != level:  # each change has all loggers forget what they know
            logger.setLevel(level)


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM as a program has them that has just begun, and afterwards as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ottla_loggers() -> list[logging.Logger]:
    """Those that were asked for so far."""
    return [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] == "ottla"]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, whose paths may have a hundred characters: those of `tmp_path` are longer where TMPDIR or the user's name is."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)
