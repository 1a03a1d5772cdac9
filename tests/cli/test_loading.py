"""The program `ottla` before its command line is there."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pytest

from ottla.__main__ import main


class CtrlC:
    """Strikes while the command line is loaded."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == "ottla.cli.main":
            raise KeyboardInterrupt
        return None


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ottla.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [CtrlC(), *sys.meta_path])
    assert main() == 130


def test_it_is_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["ottla", "tpics"])
    assert main() == 2
    assert "did you mean 'topics'" in capsys.readouterr().err
