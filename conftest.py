"""Loads the plugins of every test tree (`tests`, `interop`) and what all of them share."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

pytest_plugins = ["pytester", "tests.behaviours"]

# A test that fails when the machine is busy says nothing about the code.
settings.register_profile("patient", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=2000)  # ARGS="--hypothesis-profile=thorough"
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests that take minutes, which `make kills` is for")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes; left out unless --long says otherwise")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is long, but where it is asked what proves what."""
    if config.option.long or config.option.behaviours:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


LONGEST_ID = 100
"""Characters. Every process of a run keeps the names of all tests, and compares them with the others'."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is named by its beginning and its length."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{val[:20]!r}… of {len(val)}"
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait, for a process, a disk or each other."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end of the run: the garbage collector need not look at them each time."""
    gc.collect()
    gc.freeze()
