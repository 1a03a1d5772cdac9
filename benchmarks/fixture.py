"""Measure `ottla.testing`: one broker for the session, and a topic, a producer and an assertion for each test.

The tests run in a separate pytest process. The session is timed from its first import to its end, and each test with
its setup and teardown. Containers are not measured, since few machines that run this have Docker. `start.py` measures
the start of Apache Kafka without one.
"""

from __future__ import annotations

import compileall
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import ottla

TESTS, SESSIONS = 200, 7
PLUGIN = 'pytest_plugins = ["ottla.testing.plugin"]\n'
TIMED = (
    PLUGIN
    + """
import time, pytest
begin, spans = {}, []

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid):
    begin[nodeid] = time.perf_counter()

@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid):
    spans.append(time.perf_counter() - begin[nodeid])

def pytest_unconfigure():
    print("spans", *spans)
"""
)
USING = """
import pytest
from ottla.testing import assert_records

@pytest.mark.parametrize("number", range({count}))
def test_it(number, ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, b"order")
    assert_records(ottla_topic, ["order"])
"""
EMPTY = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_it(number):
    pass
"""


class Session(NamedTuple):
    """One run of pytest, in seconds."""

    wall: float
    processor: float
    tests: list[float]
    """The seconds of each test with its setup and teardown."""


def session(folder: Path, tests: str, count: int) -> Session:
    (folder / "conftest.py").write_text(TIMED)
    (folder / "test_it.py").write_text(tests.format(count=count))
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)]
    begin, before = time.perf_counter(), used()
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
    wall, processor = time.perf_counter() - begin, used() - before
    line = next(line for line in said.splitlines() if line.startswith("spans"))
    return Session(wall, processor, [float(each) for each in line.split()[1:]])


def used() -> float:
    """Return the processor seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    with TemporaryDirectory(prefix="ottla-fixture-") as name:
        folder = Path(name)
        compileall.compile_dir(Path(ottla.__file__).parent, quiet=2)  # also where PYTHONDONTWRITEBYTECODE is set
        session(folder, USING, 1)
        pairs = [(session(folder, EMPTY, 1), session(folder, USING, 1)) for _ in range(SESSIONS)]
        spans = sorted(session(folder, USING, TESTS).tests[1:])
    more = statistics.median(using.wall - empty.wall for empty, using in pairs)
    work = statistics.median(using.processor - empty.processor for empty, using in pairs)
    print(f"a session: {more:.2f} s more than one without Ottla ({work:.2f} s of a processor), median of {len(pairs)}")
    print(
        f"each further test, with a new topic, a producer and assert_records: {1000 * statistics.median(spans):.0f} ms "
        f"(95 of 100 within {1000 * spans[int(0.95 * len(spans))]:.0f} ms; {len(spans)} tests)"
    )


if __name__ == "__main__":
    main()
