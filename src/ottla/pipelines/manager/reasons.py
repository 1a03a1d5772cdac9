"""What an error of Spark's is about, in one sentence: the innermost that a person wrote, without traces and numbers of states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ottla.pipelines.python_errors import TRACEBACK, last_error, shortened
from ottla.spark.columns.row_decoder import REMEDY

OURS = re.compile(r"(?:ottla(?:\.\w+)*|builtins)\.\w*(?:Error|Exception): ([^\n]+)")
"""An error of ours that a worker reported."""
CALL = re.compile(r"^An error occurred while calling [^\n]*\n: ")
"""How what Java raised begins, where Spark has no class for it."""
CONDITION = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
STATE = re.compile(r"\s*SQLSTATE: \w+")
CLASS = re.compile(r"^[\w.$]+(?:Error|Exception): ")
PLACE = re.compile(r"\.?; (line \d+) pos (\d+);?$")
CAUSE = re.compile(r"(?:Caused by: |terminated with exception: )([^\n]+)")
FILE = re.compile(r"Encountered error while reading file (?:file://)?(\S+)\.\s*$")
ASIDE = "; mend it, or put such records aside: errors: {tolerance: all, deadLetterTopic: …}"
"""What a pipeline has in the place of the option `mode`."""
FULL = "No space left on device"


def reason_of(error: BaseException) -> str:
    """One sentence."""
    text = CALL.sub("", str(error))
    if any(FULL in one for one in texts_of(error)):
        return (
            "the disk is full; free some space where checkpoints, tables or files are written, and it goes on by itself"
        )
    ours = OURS.findall(text)
    if ours:
        return shortened(ours[-1].replace(REMEDY, ASIDE))
    if TRACEBACK in text:
        return last_error(text)
    causes = CAUSE.findall(text)
    told = plain(causes[-1] if causes else first_line(text))
    if (file := FILE.match(told)) is not None:
        told = told_of_file(file[1], error)
    return shortened(PLACE.sub(r" (\1, pos \2)", told)) or type(error).__name__


def plain(line: str) -> str:
    """Without what is for programs: the class of an error, its condition and state."""
    return STATE.sub("", CONDITION.sub("", CLASS.sub("", line)))


def told_of_file(file: str, error: BaseException) -> str:
    """What is wrong with a file that was read: Spark says it in what caused the error."""
    causes = [plain(first_line(one)).strip().rstrip(".") for one in texts_of(error)]
    found = dict.fromkeys(one for one in causes if one and "while reading file" not in one)
    return f"{file}: {': '.join(found) or 'it cannot be read'}; mend it where it is, and the next start goes on with it"


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Of an error, and of what caused it, in Java or in Python."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None) or error.__cause__


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line for line in text.splitlines() if line.strip()), "")
