"""The fixtures and hooks of all tests."""

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
    """Exclude the collected objects from garbage collection, which saves a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def loggers_stay_as_they_were() -> Iterator[None]:
    """Restore the loggers. A command sets the log level, which would hide the log of the next test."""
    before = {logger: logger.level for logger in ottla_loggers()}
    yield
    for logger in ottla_loggers():
        level = before.get(logger, logging.NOTSET)
        if logger.level != level:  # each change has all loggers forget what they know
            logger.setLevel(level)


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Install the default handlers of Ctrl-C and SIGTERM during a test, and restore the previous ones."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ottla_loggers() -> list[logging.Logger]:
    """Return the loggers of Ottla that exist so far."""
    return [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] == "ottla"]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, with paths below a hundred characters.

    `tmp_path` is longer if TMPDIR or the user name is long.
    """
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)
