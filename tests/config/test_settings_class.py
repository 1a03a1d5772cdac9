"""Properties of every settings class."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.settings_class import beside, changed, settings


@settings
class Common:
    """Settings to inherit."""

    server: str
    """The addresses of the first brokers."""
    client_id: str = "me"


@settings
class Table(Common):
    """Settings to try."""

    linger_ms: int = 5
    others: Mapping[str, Any] = beside(default_factory=dict)

    def __post_init__(self) -> None:
        if self.linger_ms < 0:
            raise ValueError(self.linger_ms)


def test_fields_that_are_not_given_have_their_defaults() -> None:
    assert Table(server="a") == Table(server="a", client_id="me", linger_ms=5)
    assert repr(Table(server="a")) == "Table(server='a', client_id='me', linger_ms=5)"


def test_each_instance_has_its_own_mutable_defaults() -> None:
    assert Table(server="a").others is not Table(server="a").others


def test_fields_excluded_from_comparison_do_not_affect_equality() -> None:
    one, other = Table(server="a", others={"x": 1}), Table(server="a")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Table(server="b")
    assert one != Common(server="a")


def test_a_settings_object_is_immutable() -> None:
    with pytest.raises(AttributeError, match=r"Table\.linger_ms is immutable"):
        Table(server="a").linger_ms = 6  # type: ignore[misc]


def test_a_changed_copy_is_checked_and_keeps_the_rest() -> None:
    assert changed(Table(server="a", others={"x": 1}), linger_ms=6).others == {"x": 1}
    with pytest.raises(ValueError, match="-1"):
        changed(Table(server="a"), linger_ms=-1)


def test_an_unknown_field_and_a_missing_one_are_named() -> None:
    with pytest.raises(TypeError, match="Table has no lingers"):
        Table(server="a", lingers=6)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Table needs server"):
        Table()  # type: ignore[call-arg]


def test_a_table_can_be_sent_to_another_process() -> None:
    table = Table(server="a", linger_ms=7)
    assert pickle.loads(pickle.dumps(table)) == table
