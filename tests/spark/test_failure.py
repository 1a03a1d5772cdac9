"""Errors on their way from a worker to the driver."""

from __future__ import annotations

import os

import pytest

from ottla.errors import ConfigError
from ottla.spark.failure import HIDE, without_traceback


def test_an_error_with_a_clear_message_is_shown_without_its_traceback() -> None:
    with pytest.raises(ConfigError), without_traceback():
        raise ConfigError("unknown option 'colour'")
    assert os.environ[HIDE] == "1"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), without_traceback():
        raise ZeroDivisionError
    assert HIDE not in os.environ
