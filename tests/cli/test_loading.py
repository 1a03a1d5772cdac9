"""The program `ottla` while it imports the command line, and at its exit."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import click
import pytest

from ottla.__main__ import main
from ottla.cli.main import help_width

STRIKES_AT_THE_END = """
import atexit, os, signal, sys
atexit.register(lambda: print("not to be seen"))
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from ottla.__main__ import main
sys.exit(main())
"""


LOADED = """
import sys
import ottla.cli.main
status = ottla.cli.main.main(sys.argv[1:])
print("loaded", *sorted({"json", "pathlib", "shutil", "unicodedata"} & sys.modules.keys()))
"""


class CtrlC:
    """Send Ctrl-C while the command line is imported."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "ottla.cli.main":
            raise KeyboardInterrupt
        return None


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ottla.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [CtrlC(), *sys.meta_path])
    assert main() == 130


def test_ctrl_c_while_python_ends_is_no_traceback() -> None:
    command = [sys.executable, "-c", STRIKES_AT_THE_END, "topics", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout.startswith("Usage: ")
    assert "not to be seen" not in result.stdout
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")


def test_a_program_started_with_ctrl_c_ignored_keeps_ignoring_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ottla", "--version"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert main() == 0
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_it_is_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["ottla", "tpics"])
    assert main() == 2
    assert "did you mean 'topics'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["topics", "list", "--bootstrap-server", "127.0.0.1:1"]])
def test_a_usual_command_loads_no_module_that_it_does_not_use(arguments: list[str]) -> None:
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{LOADED}", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout.splitlines()[-1] == "loaded", result.stdout


@pytest.mark.parametrize("columns", ["", "40", "66", "79", "300", "wide", "-1", "0"])
def test_help_is_as_wide_as_click_computes_it(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert help_width() == click.HelpFormatter().width
