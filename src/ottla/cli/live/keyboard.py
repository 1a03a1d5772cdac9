"""Read single keys from a terminal; its modes are restored at the end."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import suppress

from ottla.cli.live.keys import keys_in

AT_ONCE = 1024


class Keyboard:
    """A thread that passes pressed keys to `press`, from `open` to `close`."""

    def __init__(self, fd: int, press: Callable[[str], None]) -> None:
        self._fd, self._press = fd, press
        self._modes = termios.tcgetattr(fd)
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="ottla-keys", daemon=True)

    def open(self) -> None:
        self.enter_cbreak()
        self._thread.start()

    def enter_cbreak(self) -> None:
        """Enter cbreak mode: keys arrive at once and are not echoed; Ctrl-C and Ctrl-Z still send signals."""
        tty.setcbreak(self._fd, termios.TCSANOW)

    def restore(self) -> None:
        termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)

    def close(self) -> None:
        os.write(self._wake, b".")
        self._thread.join()
        self.restore()
        for fd in (self._woken, self._wake, *((self._fd,) if self._fd != sys.stdin.fileno() else ())):
            os.close(fd)

    def _run(self) -> None:
        with suppress(OSError):  # the terminal was closed
            while True:
                ready, _, _ = select.select([self._fd, self._woken], [], [])
                if self._woken in ready:
                    return
                typed = os.read(self._fd, AT_ONCE)
                if not typed:
                    return
                for key in keys_in(typed):
                    self._press(key)


def keyboard_of(press: Callable[[str], None], *, stdin_is_data: bool) -> Keyboard | None:
    """Return the keyboard of standard input or, if that is a pipe or a file, of /dev/tty; None without a terminal."""
    with suppress(OSError, termios.error):
        if sys.stdin.isatty():
            return None if stdin_is_data else Keyboard(sys.stdin.fileno(), press)
        return Keyboard(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC), press)
    return None
