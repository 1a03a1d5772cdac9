"""An exception of Python in one sentence: its last line and the place where it was raised."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence

TRACEBACK = "Traceback (most recent call last):"
GROUP = re.compile(r"^ *\| ?")
"""The sign in front of each line of an exception within an exception group."""
FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (.+)$')
LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3[^/]*/|/(?:pyspark|py4j[^/]*)\.zip/|^<frozen ")
"""Files of an installed package or of Python itself."""
AFTER_MESSAGE = re.compile(r"^\s*(?:SQLSTATE: |=== |at [\w.$]+\(|Caused by: |\.\.\. \d+ more|\+-)")
"""The lines that Spark, or an exception group, writes after the message of an exception."""
LONGEST = 400

Frame = tuple[str, int, str]
"""File, line and function."""


def last_error(text: str) -> str:
    """Return the last exception of a text that has tracebacks in it."""
    frames: list[Frame] = []
    message: list[str] = []
    for line in (GROUP.sub("", one) for one in text.rpartition(TRACEBACK)[2].splitlines()):
        if message:
            if AFTER_MESSAGE.match(line):
                break
            message.append(line)
        elif (frame := FRAME.match(line)) is not None:
            frames.append((frame[1], int(frame[2]), frame[3]))
        elif line.strip() and not line.startswith(" "):
            message.append(line)
    return with_place(" ".join(message), frames)


def describe_error(error: BaseException, inner: int = 0) -> str:
    """Return an exception of this process; its outermost `inner` frames are not the place."""
    frames = [(one.filename, one.lineno or 0, one.name) for one in traceback.extract_tb(error.__traceback__)[inner:]]
    return with_place("".join(traceback.format_exception_only(error)), frames)


def with_place(message: str, frames: Sequence[Frame]) -> str:
    """Return the message and the innermost frame, of code that is in no library if there is any."""
    text = " ".join(message.split()) or "an exception of Python"
    own = [frame for frame in frames if not LIBRARY.search(frame[0])]
    if not frames:
        return shortened(text)
    file, line, function = (own or frames)[-1]
    place = f" ({file}, line {line}, in {function})"
    return shortened(text, LONGEST - len(place)) + place


def shortened(text: str, most: int = LONGEST) -> str:
    """Return the text in one line of at most `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: max(most, 1) - 1] + "…"
