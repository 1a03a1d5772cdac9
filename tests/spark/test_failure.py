"""Errors on their way from a worker to the driver."""

from __future__ import annotations

import os

import pytest

from ottla.errors import ConfigError
from ottla.spark.failure import HIDE, plainly


def test_an_error_that_speaks_for_itself_leaves_its_traceback_behind() -> None:
    with pytest.raises(ConfigError), plainly():
        raise ConfigError("unknown option 'colour'")
    assert os.environ[HIDE] == "1"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), plainly():
        raise ZeroDivisionError
    assert HIDE not in os.environ
