"""Ctrl-Z in a separate program that is really suspended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

PROGRAM = """
import io, os, signal
from rich.console import Console
from rich.text import Text
from ottla.cli.live.screen import Screen

class Told(io.StringIO):
    '''What is written; Ctrl-Z comes amid a painting, and once more when the terminal was taken again.'''
    writing, pressed = False, 0

    def write(self, text):
        assert not self.writing, 'written to amid a write'
        self.writing = True
        taken, heeded = self.getvalue().count('?1049h'), signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL
        if 'painted' in text and self.pressed < 2 and taken == self.pressed + 1 and heeded:
            self.pressed += 1
            os.kill(os.getpid(), signal.SIGTSTP)
        self.writing = False
        return super().write(text)

screen_output = Told()
with Screen(Console(file=screen_output, force_terminal=True, width=40, height=10), stdin_is_data=True) as screen:
    while screen_output.getvalue().count('?1049h') < 3:
        screen.show(lambda whole: Text('painted'))
print(screen_output.getvalue().count('?1049l'), flush=True)
"""


def test_the_terminal_is_restored_at_each_suspension_whatever_is_being_written() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
    ) as running:
        try:
            for _ in range(2):
                _, status = os.waitpid(running.pid, os.WUNTRACED)
                assert os.WIFSTOPPED(status), status
                assert os.WSTOPSIG(status) == signal.SIGTSTP
                running.send_signal(signal.SIGCONT)
            assert running.stdout is not None
            assert running.stdout.read() == b"3\n"
            assert running.wait() == 0
        except BaseException:
            running.kill()
            raise
