"""Blocks without garbage collection."""

from __future__ import annotations

import gc

import pytest

from ottla.uncollected import uncollected


def test_nothing_is_collected_until_the_block_ends() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_exception_inside_restores_the_collector() -> None:
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
