"""The byte sequences of a terminal's keys, and the action of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES: Mapping[bytes, str] = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
    b"\t": "tab",
    b"\x1b": "escape",
    b"k": "up",
    b"j": "down",
    b"b": "page up",
    b" ": "page down",
    b"g": "home",
    b"G": "end",
    b"h": "left",
    b"l": "right",
}
"""Sequences of xterm and compatible terminals, and the letters of `less` and `vi`."""
SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[A-Z]|[\x80-\xff]+|[\x00-\xff]", re.DOTALL)
HELP: tuple[tuple[str, str], ...] = (
    ("q", "end"),
    ("↑ ↓  PgUp PgDn  Home End", "scroll; also k j, b and space, g G"),
    ("← →", "scroll the time line sideways; also h l"),
    ("Tab", "switch scrolling between picture and time line"),
    ("m", "show all lines of each box, or the first ones, cut"),
    ("p", "pause or resume; events are queued meanwhile"),
    ("s", "show the next queued event, and pause"),
    ("?", "show or hide this help"),
)
"""The help text of the keys."""


def keys_in(typed: bytes) -> list[str]:
    """Return the names of the pressed keys; unknown sequences are ignored."""
    found = (each.group() for each in SEQUENCE.finditer(typed))
    return [NAMES.get(each) or each.decode("latin-1") for each in found if len(each) == 1 or each in NAMES]
