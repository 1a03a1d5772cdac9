"""The settings as keywords that a checker and an editor know; mypy reads this file too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_type, get_type_hints

import pytest

import ottla
from ottla import aio
from ottla.client.admin.config import AdminConfig
from ottla.client.config import typed_settings as settings
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.producer.config import ProducerConfig
from ottla.config import options_of
from ottla.errors import ConfigError
from tools import typed_settings

if TYPE_CHECKING:
    from typing import Unpack

NOWHERE = "127.0.0.1:1"
TABLES: list[tuple[Any, type]] = [
    (settings.ConsumerSettings, ConsumerConfig),
    (settings.ProducerSettings, ProducerConfig),
    (settings.AdminSettings, AdminConfig),
]


@pytest.mark.parametrize(("typed", "table"), TABLES, ids=lambda each: each.__name__)
def test_each_option_is_an_optional_keyword_and_there_are_no_others(typed: Any, table: type) -> None:
    options = {option.field for option in options_of(table)}
    assert set(get_type_hints(typed)) == typed.__optional_keys__ == options
    assert not typed.__required_keys__


def test_the_keywords_match_the_settings_tables() -> None:
    written = typed_settings.PLACE.read_text(encoding="utf-8")
    assert written == typed_settings.written(), "the tables have changed: run `make settings`"


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("linger_ms", "int"),
        ("bootstrap_servers", "str | Iterable[str]"),
        ("compression_gzip_level", "int | None"),
        ("acks", 'Literal["all", "0", "1", 0, 1, "-1", -1]'),
        ("key_serializer", "Callable[[Any], bytes | None] | None"),
        ("partitioner_class", "Any"),
    ],
)
def test_a_type_is_that_of_what_is_taken(field: str, hint: str) -> None:
    options = {option.field: option for option in options_of(ProducerConfig)}
    assert typed_settings.taken(options[field]) == hint


@pytest.mark.parametrize("acks", ["all", "0", "1", 0, 1, "-1", -1])
def test_each_spelling_of_acks_that_type_checks_is_accepted(acks: Any) -> None:
    with ottla.Producer(bootstrap_servers=NOWHERE, acks=acks) as producer:
        assert producer.config.acks in ("all", "0", "1")


def pass_settings(servers: str, **more: Unpack[ottla.ConsumerSettings]) -> ottla.Consumer[Any, Any]:
    """Functions that wrap a client. Type checkers know a deserializer among the settings, but not its result."""
    return ottla.Consumer({"bootstrap.servers": servers}, **more)


def produced(**how: Unpack[ottla.ProducerSettings]) -> tuple[ottla.Producer, aio.Producer]:
    return ottla.Producer(**how), aio.Producer({"linger.ms": 5}, **how)


def administered(**how: Unpack[ottla.AdminSettings]) -> ottla.Admin:
    return ottla.Admin(**how)


def misspelled() -> None:
    """Read by mypy alone: it complains where an `ignore` does nothing, and so of each mistake that it lets through."""
    ottla.Consumer(bootstrap_server=NOWHERE)  # type: ignore[call-overload]
    ottla.Consumer({"bootstrap.servers": NOWHERE}, group_ip="g")  # type: ignore[call-overload]
    ottla.Consumer(bootstrap_servers=NOWHERE, auto_offset_reset="first")  # type: ignore[call-overload]
    ottla.Consumer(bootstrap_servers=NOWHERE, value_deserializer=str.upper)  # type: ignore[arg-type]
    aio.Consumer(bootstrap_servers=NOWHERE, fetch_min_byte=1)  # type: ignore[call-overload]
    ottla.Producer(bootstrap_servers=NOWHERE, linger="5")  # type: ignore[call-arg]
    ottla.Producer(bootstrap_servers=NOWHERE, compression_type="zip")  # type: ignore[arg-type]
    aio.Producer(bootstrap_servers=NOWHERE, ack="all")  # type: ignore[call-arg]
    ottla.Admin(bootstrap_servers=NOWHERE, linger_ms=5)  # type: ignore[call-arg]
    ottla.read_table("flights", bootstrap_servers=NOWHERE, max_poll_record=5)  # type: ignore[call-arg]


def typed() -> None:
    assert_type(ottla.Consumer(bootstrap_servers=[NOWHERE], group_id="g"), "ottla.Consumer[bytes, bytes]")
    made = ottla.Consumer(bootstrap_servers=NOWHERE, max_poll_records=5, value_deserializer=bytes.decode)
    assert_type(made, "ottla.Consumer[bytes, str]")
    loads: Callable[[bytes], dict[str, int]] = json.loads
    assert_type(
        aio.Consumer(bootstrap_servers=NOWHERE, value_deserializer=loads), "aio.Consumer[bytes, dict[str, int]]"
    )


def test_settings_can_be_stored_and_passed_to_a_client() -> None:
    kept: ottla.ConsumerSettings = {"group_id": "g", "enable_auto_commit": False, "value_deserializer": bytes.decode}
    with pass_settings(NOWHERE, **kept) as consumer:
        assert (consumer.config.group_id, consumer.config.enable_auto_commit) == ("g", False)
    with administered(bootstrap_servers=NOWHERE, default_api_timeout_ms=7) as admin:
        assert admin.config.default_api_timeout_ms == 7


@pytest.mark.parametrize("client", [ottla.Consumer, ottla.Producer, ottla.Admin, aio.Consumer, aio.Producer])
def test_a_wrong_keyword_is_an_error_with_the_closest_name_at_run_time(client: Any) -> None:
    with pytest.raises(ConfigError, match=r"^unknown setting 'request_timeout'; did you mean 'request_timeout_ms'\?$"):
        client(bootstrap_servers=NOWHERE, request_timeout=5)
