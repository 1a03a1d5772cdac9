"""Loads the plugins of every test tree (`tests`, `interop`) and what all of them share."""

from __future__ import annotations

import gc
import logging
import os
import shutil
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tools.install import stale_forms

pytest_plugins = ["pytester", "tests.behaviours", "tests.unsteady"]

# A test that fails when the machine is busy says nothing about the code.
settings.register_profile("patient", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=2000)  # ARGS="--hypothesis-profile=thorough"
settings.load_profile("patient")


MEMORY = "/dev/shm"
ROOM_BYTES = 6 * 2**30


def keep_temporary_files_in_memory() -> None:
    """Put temporary files on the file system in memory if it and the memory have room, unless TMPDIR names a place.

    The tests create and delete hundreds of thousands of files. On a disk that discards deleted blocks at once, that
    took most of the time of some tests. All processes of a run inherit the variables.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory_bytes >= 2 * ROOM_BYTES and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = MEMORY
        os.environ.setdefault("SPARK_LOCAL_DIRS", MEMORY)


keep_temporary_files_in_memory()

LEFT_OUT = {
    "heavy": "needs seconds of processor time: nodes of clusters that are killed, queries of Spark; `make test-heavy` is for it",
    "long": "takes minutes; `make kills` is for it",
    "house": "builds the tree, its site or an environment; `make lint` is for it",
}
"""What a run leaves out unless an option of the same name says otherwise."""


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker, why in LEFT_OUT.items():
        parser.addoption(f"--{marker}", action="store_true", help=f"run the tests of this marker, too: each {why}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        reject_stale_modules()
    for marker, why in LEFT_OUT.items():
        config.addinivalue_line("markers", f"{marker}: {why}; left out unless --{marker} says otherwise")


def reject_stale_modules() -> None:
    """Stop if compiled modules were built from other sources: they fail in ways that do not name the cause."""
    stale = [module.stem for module in stale_forms()]
    if stale:
        raise pytest.UsageError(
            f"the compiled form of {', '.join(stale)} was built from another version of the source: run `make install`"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that have a run of their own, unless `--behaviours` lists what proves which line.

    Heavy tests are also run if their file is an argument.
    """
    if config.option.behaviours:
        return
    unwanted = [marker for marker in LEFT_OUT if not config.getoption(marker)]
    named = {(config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args}
    left_out = [
        item
        for item in items
        if any(item.get_closest_marker(marker) for marker in unwanted if marker != "heavy" or item.path not in named)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


LONGEST_ID = 100
"""Characters. Every process of a run keeps the names of all tests, and compares them with the others'."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is named by its beginning and its length."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{val[:20]!r}… of {len(val)}"
    return None


WORKER_BYTES = 2 * 2**30
"""What each process of a run may need, with the Spark, brokers and databases that its tests start."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores, where memory has room for them: many tests wait, for a process, a disk or each other."""
    cores = os.cpu_count() or 1
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // WORKER_BYTES
    return max(cores, min(cores + 2, room))


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end of the run: the garbage collector need not look at them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def loggers_stay_as_they_were() -> Iterator[None]:
    """Restore the loggers. A command sets the log level, which would hide the log of the next test."""
    before = {logger: logger.level for logger in ottla_loggers()}
    yield
    for logger in ottla_loggers():
        level = before.get(logger, logging.NOTSET)
        if logger.level != level:  # each change has all loggers forget what they know
            logger.setLevel(level)


def ottla_loggers() -> list[logging.Logger]:
    """Return the loggers of Ottla that exist so far."""
    return [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] == "ottla"]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def keep_captured_text_plain() -> Generator[None]:
    """Let PySpark's loggers propagate, so that `caplog` does not attach its handler to them.

    pytest attaches that handler, at each phase of a test, to every logger that does not propagate. `PySparkLogger.addHandler`
    gives each handler a JSON formatter, which would stay for the rest of the process: later tests would find JSON in `caplog.text`.
    """
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logger = logging.Logger.manager.loggerDict.get(name)
        if isinstance(logger, logging.Logger):
            logger.propagate = True
    return (yield)


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = keep_captured_text_plain
