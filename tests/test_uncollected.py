"""Loading without the garbage collector."""

from __future__ import annotations

import gc

import pytest

from ottla.uncollected import uncollected


def test_nothing_is_collected_until_the_block_ends() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_fault_inside_leaves_it_as_it_was() -> None:
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()


def test_who_had_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
