"""Addresses of the settings: listeners and advertised listeners."""

from __future__ import annotations

import pytest

from ottla.broker.settings.config import read_config
from ottla.broker.settings.endpoints import Endpoint, parse_advertised, parse_listeners
from ottla.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:9092", [("PLAINTEXT", "127.0.0.1", 9092)]),
        ("PLAINTEXT://0.0.0.0:0", [("PLAINTEXT", "0.0.0.0", 0)]),
        ("plaintext://:9092", [("PLAINTEXT", "", 9092)]),
        ("[::1]:9092", [("PLAINTEXT", "::1", 9092)]),
        ("a:1, b:2,", [("PLAINTEXT", "a", 1), ("PLAINTEXT2", "b", 2)]),
        ("INTERNAL://127.0.0.1:9092,External://0.0.0.0:9094", [("INTERNAL", "127.0.0.1", 9092), ("EXTERNAL", "0.0.0.0", 9094)]),
        ("127.0.0.1:9092,[::1]:9092", [("PLAINTEXT", "127.0.0.1", 9092), ("PLAINTEXT2", "::1", 9092)]),
    ],
)  # fmt: skip
def test_listeners_are_parsed(text: str, found: list[tuple[str, str, int]]) -> None:
    assert list(parse_listeners(text)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "clients need one"),
        (" , ", "clients need one"),
        ("localhost", "must be host:port"),
        ("localhost:", "must be host:port"),
        ("localhost:x", "must be host:port"),
        ("a:70000", "must be host:port"),
        ("a:²", "must be host:port"),
        ("::1:9092", "must be host:port"),
        ("://a:1", "has no name"),
        ("A://a:1,A://a:2", "A is listed twice"),
        ("A://a:1,B://a:1", "A and B have the same port"),
        ("A://0.0.0.0:1,B://127.0.0.1:1", "A and B have the same port"),
    ],
)
def test_an_invalid_listener_is_a_one_line_error(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"^listeners = {text!r}: ") as refused:
        parse_listeners(text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("listeners", "protocols", "why"),
    [
        ("OUT://a:1", "IN:PLAINTEXT", "add it to listener.security.protocol.map, such as OUT:PLAINTEXT"),
        ("OUT://a:1", "OUT:PLAINTXT", "unknown protocol 'PLAINTXT'; did you mean 'PLAINTEXT'?"),
        ("OUT://a:1", "OUT", "must be NAME:PROTOCOL"),
        (
            "SASL_SLL://a:1",
            "",
            "listener SASL_SLL has no security protocol: correct its name (SSL, SASL_PLAINTEXT, SASL_SSL)",
        ),
        ("TLS://a:1", "", "or add it to listener.security.protocol.map, such as TLS:SASL_SSL"),
    ],
)
def test_an_unsupported_protocol_is_reported(listeners: str, protocols: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(listeners=listeners, listener_security_protocol_map=protocols)
    assert why in str(refused.value)


def test_the_protocol_map_of_kafka_is_accepted() -> None:
    kafkas = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    assert parse_listeners("PLAINTEXT://:9092,CONTROLLER://:9093", kafkas, {"CONTROLLER"}) == (("PLAINTEXT", "", 9092),)


LISTENERS = (Endpoint("IN", "127.0.0.1", 0), Endpoint("OUT", "0.0.0.0", 9094))


def test_an_advertised_address_belongs_to_the_listener_of_its_name() -> None:
    assert parse_advertised("OUT://example.org:19094", LISTENERS) == {"OUT": ("OUT", "example.org", 19094)}


def test_without_names_advertised_addresses_are_in_the_order_of_the_listeners() -> None:
    reported = parse_advertised("a:1,[::1]:2", LISTENERS)
    assert {name: str(endpoint) for name, endpoint in reported.items()} == {"IN": "IN://a:1", "OUT": "OUT://[::1]:2"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("OTU://a:1", "unknown listener 'OTU'; did you mean 'OUT'?"),
        ("OUT://0.0.0.0:1", "clients need a host and a port to connect to"),
        ("OUT://a:0", "clients need a host and a port to connect to"),
        ("OUT://a:1,OUT://b:2", "OUT is listed twice"),
    ],
)
def test_an_unusable_address_is_not_advertised(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_advertised(text, LISTENERS)
    assert why in str(refused.value)
