"""Filling a settings class: names, types, bounds, and the sentence about what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config import Between, read_settings
from ottla.errors import ConfigError
from ottla.settings_class import settings


@settings
class Common:
    """Settings to inherit."""

    bootstrap_servers: tuple[str, ...]
    """Where to begin."""
    client_id: str = "me"


@settings
class Settings(Common):
    """Settings to try."""

    linger_ms: Annotated[int, Between(0)] = 5
    """How long a batch waits for company
    before it is sent."""
    ratio: Annotated[float, Between(0, 1)] = 0.5
    acks: Literal["0", "1", "all"] = "all"
    check_crcs: bool = True
    group_id: str | None = None
    retention_ms: Annotated[int, Between(1)] | None = None
    partitioner: Any = None
    serializer: Callable[[Any], bytes] | None = None


def read(settings: dict[str, Any] | None = None, /, **keywords: Any) -> Settings:
    return read_settings(Settings, {"bootstrap.servers": "a:1"} | (settings or {}), **keywords)


def test_dotted_names_and_keywords_set_the_same_things() -> None:
    assert read({"linger.ms": 7}) == read(linger_ms=7)
    assert read({"linger.ms": 7}).linger_ms == 7


def test_settings_that_are_not_given_have_their_defaults() -> None:
    assert read() == Settings(bootstrap_servers=("a:1",))


@pytest.mark.parametrize(
    ("setting", "given", "value"),
    [
        ("bootstrap_servers", "a:1, b:2,", ("a:1", "b:2")),
        ("bootstrap_servers", ["a:1", "b:2"], ("a:1", "b:2")),
        ("linger_ms", "12", 12),
        ("linger_ms", 12.0, 12),
        ("ratio", "0.25", 0.25),
        ("acks", 1, "1"),
        ("acks", "ALL", "all"),
        ("check_crcs", "False", False),
        ("check_crcs", "on", True),
        ("group_id", None, None),
        ("group_id", "g", "g"),
        ("retention_ms", "5", 5),
        ("retention_ms", None, None),
        ("partitioner", len, len),
    ],
)
def test_text_becomes_the_declared_type(setting: str, given: Any, value: Any) -> None:
    assert (
        getattr(read_settings(Settings, {"bootstrap.servers": "a:1"} | {setting.replace("_", "."): given}), setting)
        == value
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"linger.msec": 5}, "unknown setting 'linger.msec'; did you mean 'linger.ms'?"),
        ({"xyzzy": 5}, "unknown setting 'xyzzy'"),
        ({"linger.ms": "soon"}, "linger.ms = 'soon': must be a whole number"),
        ({"linger.ms": 1.5}, "linger.ms = 1.5: must be a whole number"),
        ({"linger.ms": True}, "linger.ms = True: must be a whole number"),
        ({"linger.ms": float("inf")}, "linger.ms = inf: must be a whole number"),
        ({"linger.ms": -1}, "linger.ms = -1: must be at least 0"),
        ({"ratio": "half"}, "ratio = 'half': must be a number"),
        ({"ratio": 1.5}, "ratio = 1.5: must be at most 1"),
        ({"ratio": float("nan")}, "ratio = nan: must be a number"),
        ({"acks": 2}, "acks = 2: must be one of 0, 1, all"),
        ({"check.crcs": "maybe"}, "check.crcs = 'maybe': must be true or false"),
        ({"client.id": 5}, "client.id = 5: must be text"),
        ({"client.id": None}, "client.id = None: must be text"),
        ({"retention.ms": 0}, "retention.ms = 0: must be at least 1"),
        ({"bootstrap.servers": 9092}, "bootstrap.servers = 9092: must be a list, such as localhost:9092"),
        ({"bootstrap.servers": ["a:1", 5]}, "bootstrap.servers = 5: must be text"),
        ({5: 5}, "unknown setting 5"),
        ({"serializer": 5}, "serializer = 5: must be a function"),
    ],
)
def test_an_invalid_value_is_one_clear_error(settings: dict[Any, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(settings)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("bounds", [Between(0, 1), Between(0.0, 1.0)])
def test_a_bound_reads_the_same_however_it_was_written(bounds: Between) -> None:
    with pytest.raises(ConfigError, match=r"^ratio = 1\.5: must be at most 1$"):
        bounds.check("ratio", 1.5)
    with pytest.raises(ConfigError, match=r"^ratio = -1: must be at least 0$"):
        bounds.check("ratio", -1)


def test_a_suggestion_is_spelled_the_way_the_user_spells() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'linger_ms'\?"):
        read(lingr_ms=5)


def test_a_name_given_both_ways_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^linger\.ms is given twice: give it once$"):
        read({"linger.ms": 5}, linger_ms=5)


def test_settings_that_are_no_dict_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^settings = '127\.0\.0\.1:9092': must be a dict"):
        read_settings(Settings, "127.0.0.1:9092")  # type: ignore[arg-type]


def test_a_setting_without_default_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"^bootstrap\.servers is required, such as localhost:9092$"):
        read_settings(Settings, {})


@given(
    st.text(max_size=30), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
)
def test_any_name_with_any_value_is_read_or_refused_by_config_error(name: str, value: object) -> None:
    for setting in (name, "linger.ms", "ratio", "acks", "check.crcs", "group.id", "bootstrap.servers", "retention.ms"):
        with suppress(ConfigError):
            read({setting: value})
