"""Errors of Spark, described in one sentence."""

from __future__ import annotations

import pytest

from ottla.pipelines.manager.reasons import reason_of
from ottla.pipelines.python_errors import LONGEST
from ottla.spark.columns.row_decoder import REMEDY

WORKER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted: Traceback (most recent call last):
  File "worker.py", line 1, in main
ottla.errors.ConfigError: topic 'a' is gone
\tat org.apache.spark.Something(X.scala:1)
SQLSTATE: XXKST"""
JAVA = "[STREAM_FAILED] Query [id = 1] terminated with exception: Path does not exist: /x SQLSTATE: 42K03\n\tat a.b"
FULL = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: java.io.IOException: No space left on device\n\tat a.b"
)
PARSED = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nselec"
CALLED = (
    "An error occurred while calling o436.start.\n: org.apache.hadoop.fs.ParentNotDirectoryException: "
    "Parent path is not a directory: file:/a\n\tat org.apache.hadoop.fs.RawLocalFileSystem.mkdirs(X.java:1)"
)
UNKNOWN = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/shop/rows.py", line 7, in first
    return {}[x]
           ~~^^^
KeyError: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/shop/rows.py", line 9, in second
    check(x)
    ~~~~~^^^
  File "/opt/venv/lib/python3.11/site-packages/pandas/core/base.py", line 3, in check
    raise errors.Wrong(
  File "<frozen importlib._bootstrap>", line 1, in _find
rows.errors.Wrong: a value
of two lines
 SQLSTATE: 38000
=== Streaming Query ===
Identifier: p [id = 1]
Traceback"""
PROXY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "/venv/lib/python3.11/site-packages/ottla/spark/tables/stats.py", line 30, in read
    return value
OverflowError: date value out of range

\tat py4j.Protocol.getReturnValue(Protocol.java:476)"""
GROUPED = """Job aborted: Exception Group Traceback (most recent call last):
  |   File "/shop/a.py", line 1, in a
  | ExceptionGroup: several (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/shop/a.py", line 2, in b
    |     raise ValueError("x")
    | ValueError: x
    +------------------------------------
"""
BARE = 'Traceback (most recent call last):\n  File "/shop/a.py", line 2, in b\n    assert False\nAssertionError'
SQL = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved: `x`. SQLSTATE: 42703; line 1 pos 7;\n'Project"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKER, "topic 'a' is gone"),
        (JAVA, "Path does not exist: /x"),
        (CALLED, "Parent path is not a directory: file:/a"),
        (SQL, "A column cannot be resolved: `x` (line 1, pos 7)"),
        (UNKNOWN, "rows.errors.Wrong: a value of two lines (/shop/rows.py, line 9, in second)"),
        (
            PROXY,
            "OverflowError: date value out of range "
            "(/venv/lib/python3.11/site-packages/ottla/spark/tables/stats.py, line 30, in read)",
        ),
        (GROUPED, "ValueError: x (/shop/a.py, line 2, in b)"),
        (BARE, "AssertionError (/shop/a.py, line 2, in b)"),
        ("Traceback (most recent call last):\n", "an exception of Python"),
        (PARSED, "Syntax error at or near 'selec'. (line 1, pos 0)"),
        (
            FULL,
            "the disk is full; free some space where checkpoints, tables or files are written, and the pipeline continues by itself",
        ),
        ("", "ValueError"),
    ],
)
def test_it_is_the_innermost_that_a_person_wrote(text: str, reason: str) -> None:
    assert reason_of(ValueError(text)) == reason


def test_a_message_that_is_too_long_does_not_hide_the_place() -> None:
    reason = reason_of(ValueError(BARE.replace("AssertionError", f"ValueError: {'x' * 1000}")))
    assert len(reason) == LONGEST
    assert reason.endswith("x… (/shop/a.py, line 2, in b)")


def test_the_remedy_for_a_bad_record_is_the_file_s_and_not_an_option_that_it_has_not() -> None:
    message = f"ottla.spark.row_decoder.MalformedRecordError: the record at offset 0 of a-0 cannot be decoded: no JSON{REMEDY}"
    reason = reason_of(ValueError(f"[STREAM_FAILED] Query: Traceback\n{message}\nat a.b"))
    assert reason.startswith("the record at offset 0 of a-0 cannot be decoded: no JSON; correct it, or put")
    assert reason.endswith("errors: {tolerance: all, deadLetterTopic: …}")


def test_a_full_disk_is_reported_anywhere_in_the_causes() -> None:
    error = ValueError("Task failed while writing rows")
    error.__cause__ = OSError("No space left on device")
    assert reason_of(error).startswith("the disk is full")


def test_file_errors_are_reported_from_the_causes() -> None:
    reading = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/c.csv.  SQLSTATE: KD001"
    malformed = "[MALFORMED] Malformed records are detected: [null,4111].\nParse Mode: FAILFAST.  SQLSTATE: 22023"
    error = ValueError(f"{reading}\n=== Streaming Query ===\nIdentifier: 1")
    error.__cause__ = OSError(f"org.apache.spark.SparkException: {reading}")
    error.__cause__.__cause__ = OSError(f"org.apache.spark.SparkException: {malformed}")
    error.__cause__.__cause__.__cause__ = OSError('For input string: "x"')
    assert reason_of(error) == (
        '/in/c.csv: Malformed records are detected: [null,4111]: For input string: "x"; correct the file in place, and the next start continues with it'
    )
    assert reason_of(ValueError(reading)).startswith("/in/c.csv: it cannot be read; correct")
