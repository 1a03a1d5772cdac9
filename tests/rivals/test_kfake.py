"""Compiling kfake on a machine that lacks what it needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rivals import kfake


def test_without_go_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kfake, "PROGRAM", tmp_path / "kfake")
    assert not kfake.can_be_had()
    with pytest.raises(RuntimeError, match=r"^there is no Go here, .* install Go"):
        kfake.fetch()


def test_an_existing_program_needs_no_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kfake, "PROGRAM", tmp_path / "kfake")
    kfake.PROGRAM.touch()
    assert kfake.can_be_had()
    kfake.fetch()


def test_a_program_older_than_its_source_is_rebuilt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kfake, "PROGRAM", tmp_path / "program")
    monkeypatch.setattr(kfake, "SOURCE", tmp_path)
    for path in (kfake.PROGRAM, tmp_path / "main.go", tmp_path / "go.mod"):
        path.touch()
        os.utime(path, (1_000, 1_000))
    assert kfake.fetched()
    os.utime(tmp_path / "main.go", (2_000, 2_000))
    assert not kfake.fetched()
