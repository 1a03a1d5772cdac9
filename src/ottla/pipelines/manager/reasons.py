"""What an error of Spark's is about, in one sentence: the innermost that a person wrote, without traces and numbers of states."""

from __future__ import annotations

import re
from collections.abc import Iterator

OURS = re.compile(r"(?:ottla(?:\.\w+)*|builtins)\.\w*(?:Error|Exception): ([^\n]+)")
"""An error of ours that a worker reported."""
CONDITION = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
STATE = re.compile(r"\s*SQLSTATE: \w+")
PLACE = re.compile(r"\.?; (line \d+) pos (\d+);?$")
CAUSE = re.compile(r"(?:Caused by: |terminated with exception: )([^\n]+)")
LONGEST = 400
FULL = "No space left on device"


def reason_of(error: BaseException) -> str:
    """One sentence."""
    text = str(error)
    if any(FULL in one for one in texts_of(error)):
        return (
            "the disk is full; free some space where checkpoints, tables or files are written, and it goes on by itself"
        )
    ours = OURS.findall(text)
    if ours:
        return shortened(ours[-1])
    causes = CAUSE.findall(text)
    told = causes[-1] if causes else first_line(text)
    told = STATE.sub("", CONDITION.sub("", re.sub(r"^[\w.$]+(?:Error|Exception): ", "", told)))
    return shortened(PLACE.sub(r" (\1, pos \2)", told)) or type(error).__name__


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Of an error, and of what caused it, in Java or in Python."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None) or error.__cause__


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line for line in text.splitlines() if line.strip()), "")


def shortened(text: str) -> str:
    """Not longer than a person reads."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
