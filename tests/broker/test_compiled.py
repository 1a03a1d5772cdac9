"""The note about hot loops that are not compiled."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ottla.compiled import uncompiled_modules


def test_hot_modules_without_a_compiled_form_are_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "room").mkdir(parents=True)
    for name in ("slow.py", "slow.pxd", "quick.py", "quick.pxd", f"quick{EXTENSION_SUFFIXES[0]}", "plain.py", "c.pxd"):
        (package / "room" / name).touch()
    assert uncompiled_modules(package) == ["house.room.slow"]
