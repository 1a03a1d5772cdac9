"""What a node is by its settings: a broker, a controller, both, or a cluster of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.cluster.placement import cordoned
from ottla.broker.settings import roles
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.errors import ConfigError
from ottla.storage.directory.data_directory import DataDirectory

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/somewhere",
}


def config(**changed: str) -> BrokerConfig:
    return read_config(BOTH | {name.replace("_", "."): value for name, value in changed.items()})


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"controller_quorum_voters": "1@127.0.0.1:9093"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093"},
        {"controller_quorum_bootstrap_servers": "localhost:9093"},
        {
            "controller_quorum_bootstrap_servers": "kafka.example.org:9093",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093",
        },
        {
            "controller_quorum_bootstrap_servers": "kafka.example.org:9093",
            "advertised_listeners": "PLAINTEXT://kafka.example.org:9092,CONTROLLER://kafka.example.org:9093",
        },
    ],
)
def test_who_names_itself_alone_is_a_cluster_of_its_own(named: dict[str, str]) -> None:
    alone = config(**named)
    assert (alone.combines, alone.joins, alone.controls) == (False, False, False)


@pytest.mark.parametrize(
    "named",
    [
        {"controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093,127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "10.0.0.2:9093"},
    ],
)
def test_who_names_others_is_a_broker_and_a_controller_of_their_cluster(named: dict[str, str]) -> None:
    both = config(**named)
    assert (both.combines, both.joins, both.controls) == (True, True, False)
    assert [each.name for each in both.endpoints()] == ["PLAINTEXT"]

    half = roles.controller_half(both)
    assert (half.combines, half.joins, half.controls) == (False, False, True)
    assert [str(each) for each in half.endpoints()] == ["CONTROLLER://127.0.0.1:9093"]


def test_a_broker_asks_the_voters_where_no_others_are_named() -> None:
    voters = config(controller_quorum_voters="1@127.0.0.1:9093,2@127.0.0.1:9095")
    assert roles.controllers(voters) == [("127.0.0.1", 9093), ("127.0.0.1", 9095)]


@pytest.mark.parametrize(
    "named",
    [
        {"controller_quorum_voters": "1@127.0.0.1:9093"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093"},
    ],
)
def test_a_broker_joins_whoever_its_settings_call_controllers(named: dict[str, str]) -> None:
    guest = config(process_roles="broker", node_id="7", listeners="PLAINTEXT://127.0.0.1:9092", **named)
    assert (guest.combines, guest.joins, guest.controls) == (False, True, False)


@pytest.mark.parametrize(
    ("role", "said", "takes_partitions"),
    [
        ("broker,controller", {}, True),
        ("broker,controller", {"cordoned_log_dirs": "*"}, False),
        ("broker", {}, False),
        ("broker", {"cordoned_log_dirs": ""}, True),
    ],
)
def test_a_guest_takes_no_partitions_unasked_and_a_node_that_votes_does(
    tmp_path: Path, role: str, said: dict[str, str], takes_partitions: bool
) -> None:
    settings = config(process_roles=role, controller_quorum_bootstrap_servers="10.0.0.2:9093", **said)
    directory = DataDirectory.open(tmp_path, node_id=1)
    try:
        assert (directory.directory_id not in cordoned(settings, directory)) is takes_partitions
    finally:
        directory.close()


def test_what_does_not_fit_one_half_is_told() -> None:
    others = {"controller_quorum_bootstrap_servers": "127.0.0.1:9093,127.0.0.1:9095"}
    with pytest.raises(ConfigError, match=r"log\.dirs is empty"):
        config(**others, log_dirs="")
    with pytest.raises(ConfigError, match="clients need one to connect to"):
        config(**others, listeners="CONTROLLER://127.0.0.1:9093")
    with pytest.raises(ConfigError, match="listeners = ''"):
        config(**others, listeners="PLAINTEXT://127.0.0.1:9092")
    with pytest.raises(ConfigError, match=r"node\.id = 1 is not among them"):
        config(controller_quorum_voters="2@127.0.0.1:9095,3@127.0.0.1:9097")
