"""Addresses as the settings give them: where to listen, and what clients are told."""

from __future__ import annotations

import pytest

from ottla.broker.settings.config import read_config
from ottla.broker.settings.endpoints import Endpoint, advertised, listening
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
def test_listeners_are_read(text: str, found: list[tuple[str, str, int]]) -> None:
    assert list(listening(text)) == found


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
        ("A://a:1,A://a:2", "A is there twice"),
        ("A://a:1,B://a:1", "A and B want the same port"),
        ("A://0.0.0.0:1,B://127.0.0.1:1", "A and B want the same port"),
    ],
)
def test_what_cannot_be_listened_on_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"^listeners = {text!r}: ") as refused:
        listening(text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("listeners", "protocols", "why"),
    [
        ("OUT://a:1", "IN:PLAINTEXT", "name it in listener.security.protocol.map, as OUT:PLAINTEXT"),
        ("OUT://a:1", "OUT:PLAINTXT", "unknown protocol 'PLAINTXT'; did you mean 'PLAINTEXT'?"),
        ("OUT://a:1", "OUT", "must be NAME:PROTOCOL"),
    ],
)
def test_a_protocol_that_is_not_spoken_is_said(listeners: str, protocols: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(listeners=listeners, listener_security_protocol_map=protocols)
    assert why in str(refused.value)


def test_kafkas_own_map_fits() -> None:
    kafkas = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    assert listening("PLAINTEXT://:9092,CONTROLLER://:9093", kafkas, {"CONTROLLER"}) == (("PLAINTEXT", "", 9092),)


LISTENERS = (Endpoint("IN", "127.0.0.1", 0), Endpoint("OUT", "0.0.0.0", 9094))


def test_an_advertised_address_belongs_to_the_listener_of_its_name() -> None:
    assert advertised("OUT://example.org:19094", LISTENERS) == {"OUT": ("OUT", "example.org", 19094)}


def test_without_a_name_addresses_go_by_the_order_of_the_listeners() -> None:
    told = advertised("a:1,[::1]:2", LISTENERS)
    assert {name: str(endpoint) for name, endpoint in told.items()} == {"IN": "IN://a:1", "OUT": "OUT://[::1]:2"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("OTU://a:1", "unknown listener 'OTU'; did you mean 'OUT'?"),
        ("OUT://0.0.0.0:1", "clients need a host and a port to connect to"),
        ("OUT://a:0", "clients need a host and a port to connect to"),
        ("OUT://a:1,OUT://b:2", "OUT is there twice"),
    ],
)
def test_an_address_nobody_could_use_is_not_advertised(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        advertised(text, LISTENERS)
    assert why in str(refused.value)
