"""Describes errors of Spark in one sentence: the innermost message, without stack traces and error states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ottla.pipelines.python_errors import TRACEBACK, last_error, shortened
from ottla.spark.columns.row_decoder import REMEDY

OURS = re.compile(r"(?:ottla(?:\.\w+)*|builtins)\.\w*(?:Error|Exception): ([^\n]+)")
"""An error of Ottla that a worker reported."""
CALL = re.compile(r"^An error occurred while calling [^\n]*\n: ")
"""The start of a Java exception for which Spark has no Python class."""
CONDITION = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
STATE = re.compile(r"\s*SQLSTATE: \w+")
CLASS = re.compile(r"^[\w.$]+(?:Error|Exception): ")
PLACE = re.compile(r"\.?; (line \d+) pos (\d+);?$")
CAUSE = re.compile(r"(?:Caused by: |terminated with exception: )([^\n]+)")
FILE = re.compile(r"Encountered error while reading file (?:file://)?(\S+)\.\s*$")
ASIDE = "; correct it, or put such records aside: errors: {tolerance: all, deadLetterTopic: …}"
"""The remedy in pipelines, in place of the option `mode`."""
FULL = "No space left on device"


def reason_of(error: BaseException) -> str:
    """Return the description in one sentence."""
    text = CALL.sub("", str(error))
    if any(FULL in one for one in texts_of(error)):
        return "the disk is full; free some space where checkpoints, tables or files are written, and the pipeline continues by itself"
    ours = OURS.findall(text)
    if ours:
        return shortened(ours[-1].replace(REMEDY, ASIDE))
    if TRACEBACK in text:
        return last_error(text)
    causes = CAUSE.findall(text)
    text = strip_error_class(causes[-1] if causes else first_line(text))
    if (file := FILE.match(text)) is not None:
        text = describe_file_error(file[1], error)
    return shortened(PLACE.sub(r" (\1, pos \2)", text)) or type(error).__name__


def strip_error_class(line: str) -> str:
    """Return a line without the class, condition and state of the error."""
    return STATE.sub("", CONDITION.sub("", CLASS.sub("", line)))


def describe_file_error(file: str, error: BaseException) -> str:
    """Return the cause of an error in a file; Spark has it in the causes of its exception."""
    causes = [strip_error_class(first_line(one)).strip().rstrip(".") for one in texts_of(error)]
    found = dict.fromkeys(one for one in causes if one and "while reading file" not in one)
    return f"{file}: {': '.join(found) or 'it cannot be read'}; correct the file in place, and the next start continues with it"


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Yield the texts of an error and of its causes, in Java or in Python."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None) or error.__cause__


def first_line(text: str) -> str:
    """Return the first line that is not empty."""
    return next((line for line in text.splitlines() if line.strip()), "")


STATE_CONDITION = re.compile(r"\[(STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)\]")
SCHEMAS = re.compile(r"Existing (key|value)_schema=(.*?) and new \1_schema=(.*?)\.(?:\s|$)", re.DOTALL)
FIELD = re.compile(r"StructField\(([^,()]+),(\w+?)Type(\(\d+,\d+\))?,(?:true|false)\)")


def describe_incompatible_state(error: BaseException) -> str | None:
    """Return the description of the incompatible state if the error is about it, otherwise None."""
    for text in texts_of(error):
        if STATE_CONDITION.search(text):
            found = SCHEMAS.search(text)
            if found is None:
                return "its state was kept by other transforms"
            return f"its state was kept with the {found[1]} ({format_fields(found[2])}) and would be with ({format_fields(found[3])})"
    return None


def format_fields(schema: str) -> str:
    """Return the fields in Spark's text of a schema: `sum double, count long`."""
    found = FIELD.findall(schema)
    return shortened(", ".join(f"{name} {kind.lower()}{size}" for name, kind, size in found) or schema)
