from __future__ import annotations

import pytest

import ottla
from ottla.client.network.bootstrap import CANONICAL, bootstrap_nodes, canonical_names, parse_address
from ottla.errors import ConfigError
from ottla.model import Node


def test_addresses_get_negative_ids_in_their_order() -> None:
    assert bootstrap_nodes(["a:1", "b:2", "a:1"]) == (Node(-1, "a", 1), Node(-2, "b", 2))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9092", "127.0.0.1", 9092),
        ("[::1]:9092", "::1", 9092),
        ("localhost", "localhost", 9092),
        ("[::1]", "::1", 9092),
        ("PLAINTEXT://kafka.example.org", "kafka.example.org", 9092),
        ("PLAINTEXT://kafka.example.org:19092", "kafka.example.org", 19092),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert bootstrap_nodes([text]) == (Node(-1, host, port),)


@pytest.mark.parametrize(
    "text", ["::1", ":9092", "localhost:", "localhost:0", "localhost:99999", "http://a:1", "a b:1"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers = .*127\.0\.0\.1:9092"):
        bootstrap_nodes([text])


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is empty"):
        bootstrap_nodes([])


def test_an_address_with_the_name_of_an_encrypted_protocol_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"set security\.protocol=SSL"):
        bootstrap_nodes(["SSL://a:1"])


def test_an_alias_resolves_to_all_of_its_host_names() -> None:
    names = {"alias": ["one.example", "two.example"], "two.example": ["two.example"]}
    nodes = bootstrap_nodes(["alias:9092", "two.example:9092"], CANONICAL, names.__getitem__)
    assert [(node.node_id, node.host, node.port) for node in nodes] == [
        (-1, "one.example", 9092),
        (-2, "two.example", 9092),
    ]


def test_a_host_that_cannot_be_looked_up_stays_as_it_is() -> None:
    assert canonical_names("no such host") == ["no such host"]


@pytest.mark.parametrize(
    "servers",
    [
        "alice:s3cret@kafka.example.org:9092",
        "SASL_SSL://alice:s3cret@kafka.example.org:9092",
        "alice:s3c,ret@kafka.example.org:9092",
        "other.example.org:9092,alice:s3cret@@kafka.example.org:9092",
        "alice:s3cret@kafka.example.org:port",
    ],
)
def test_a_user_and_password_in_an_address_are_refused_and_not_repeated(servers: str) -> None:
    for read in (bootstrap_nodes, lambda given: [parse_address(each) for each in given if "@" in each]):
        with pytest.raises(ConfigError, match=r"\*\*\*@kafka\.example\.org.*set security\.protocol") as refused:
            read(servers.split(","))
        assert not any(part in str(refused.value) for part in ("alice", "s3c", "ret"))
    with pytest.raises(ConfigError) as refused:
        ottla.Producer(bootstrap_servers=servers)
    assert "s3c" not in str(refused.value)
