"""A command in a terminal of 80 x 24: what it shows is read from the screen, keys are typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType

from tests.cli.conftest import ENVIRONMENT, OTTLA, PATIENCE

WIDTH, HEIGHT = 80, 24
TAKES_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(1, termios.TIOCSCTTY); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Make this terminal the controlling one (/dev/tty), as a shell does before it starts a command."""
PIECE = re.compile(rb"\x1b\[(?P<row>\d+);(?P<column>\d+)H|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[78]|(?P<text>[^\x1b]+)")
UNSIZED = ("COLUMNS", "LINES")


class Terminal:
    """`with Terminal("groups", "watch", …) as terminal`; what is still running at its end is killed."""

    def __init__(self, *arguments: str, stdin: int | None = None) -> None:
        self._controller, self._terminal = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self.modes_before = termios.tcgetattr(self._terminal)
        environment = {name: value for name, value in ENVIRONMENT.items() if name not in UNSIZED}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, *OTTLA, *arguments],
            stdin=self._terminal if stdin is None else stdin,
            stdout=self._terminal,
            stderr=self._terminal,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        self.raw = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)
        os.close(self._terminal)

    @property
    def modes(self) -> object:
        return termios.tcgetattr(self._terminal)

    def type(self, keys: bytes) -> None:
        os.write(self._controller, keys)

    def shows(self, words: str) -> None:
        """Wait until a row of the screen contains these words."""
        deadline = time.monotonic() + PATIENCE
        while not any(words in row for row in self.rows()):
            assert self._read(deadline - time.monotonic()), f"{words!r} is not shown, but {self.rows()}"

    def says(self, words: str) -> None:
        """Wait until a command that only writes lines has written these words."""
        deadline = time.monotonic() + PATIENCE
        while words.encode() not in self.raw:
            assert self._read(deadline - time.monotonic()), f"{words!r} is not said, but {self.raw!r}"

    def ends(self) -> int:
        """Wait for the end of the command and return its status."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            self._read(0.05)
            assert time.monotonic() < deadline, f"it goes on and shows {self.rows()}"
        while self._read(0):
            pass
        return self.process.returncode

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def rows(self) -> list[str]:
        """Return the rows of the screen."""
        rows = [""] * HEIGHT
        row = 0
        for piece in PIECE.finditer(self.raw[self.raw.rfind(b"\x1b[1;1H") :]):
            if piece["row"]:
                row = int(piece["row"]) - 1
                rows[row] = ""
            elif piece["text"]:
                rows[row] += piece["text"].decode(errors="replace")
        return rows

    def _read(self, seconds: float) -> bool:
        """Read new output; return True if there was any."""
        if not is_readable(self._controller, seconds):
            return False
        self.raw += os.read(self._controller, 1 << 16)
        return True


def is_readable(fd: int, seconds: float) -> bool:
    """True if there is input within `seconds`. `selectors` is used because select() accepts no descriptor above 1023."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(max(0.0, seconds)))
