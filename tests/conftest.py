"""The fixtures and hooks of all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has what it starts in the background ignore Ctrl-C, and so would all that the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Install the default handlers of Ctrl-C and SIGTERM during a test, and restore the previous ones."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, with paths below a hundred characters.

    `tmp_path` is longer if TMPDIR or the user name is long.
    """
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)
