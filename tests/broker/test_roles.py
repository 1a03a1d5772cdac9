"""The roles of a node by its settings: a broker, a controller, both, or a cluster of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.metadata.placement import list_cordoned
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
def test_a_node_that_names_only_itself_is_a_cluster_of_one(named: dict[str, str]) -> None:
    alone = config(**named)
    assert (alone.has_both_roles, alone.joins_cluster, alone.is_controller) == (False, False, False)


@pytest.mark.parametrize(
    "named",
    [
        {"controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093,127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9095"},
        {"controller_quorum_bootstrap_servers": "10.0.0.2:9093"},
    ],
)
def test_a_node_that_names_others_is_a_broker_and_a_controller_of_their_cluster(named: dict[str, str]) -> None:
    both = config(**named)
    assert (both.has_both_roles, both.joins_cluster, both.is_controller) == (True, True, False)
    assert [each.name for each in both.endpoints()] == ["PLAINTEXT"]

    half = roles.controller_half(both)
    assert (half.has_both_roles, half.joins_cluster, half.is_controller) == (False, False, True)
    assert [str(each) for each in half.endpoints()] == ["CONTROLLER://127.0.0.1:9093"]


def test_a_broker_uses_the_voters_if_no_bootstrap_servers_are_set() -> None:
    voters = config(controller_quorum_voters="1@127.0.0.1:9093,2@127.0.0.1:9095")
    assert roles.list_controllers(voters) == [("127.0.0.1", 9093), ("127.0.0.1", 9095)]


@pytest.mark.parametrize(
    "named",
    [
        {"controller_quorum_voters": "1@127.0.0.1:9093"},
        {"controller_quorum_bootstrap_servers": "127.0.0.1:9093"},
    ],
)
def test_a_broker_joins_the_controllers_of_its_settings(named: dict[str, str]) -> None:
    guest = config(process_roles="broker", node_id="7", listeners="PLAINTEXT://127.0.0.1:9092", **named)
    assert (guest.has_both_roles, guest.joins_cluster, guest.is_controller) == (False, True, False)


@pytest.mark.parametrize(
    ("role", "said", "takes_partitions"),
    [
        ("broker,controller", {}, True),
        ("broker,controller", {"cordoned_log_dirs": "*"}, False),
        ("broker", {}, True),
        ("broker", {"cordoned_log_dirs": "*"}, False),
    ],
)
def test_a_node_gets_new_partitions_unless_its_directories_are_cordoned(
    tmp_path: Path, role: str, said: dict[str, str], takes_partitions: bool
) -> None:
    settings = config(process_roles=role, controller_quorum_bootstrap_servers="10.0.0.2:9093", **said)
    directory = DataDirectory.open(tmp_path, node_id=1)
    try:
        assert (directory.directory_id not in list_cordoned(settings, directory)) is takes_partitions
    finally:
        directory.close()


def test_settings_that_do_not_fit_a_role_are_rejected() -> None:
    others = {"controller_quorum_bootstrap_servers": "127.0.0.1:9093,127.0.0.1:9095"}
    with pytest.raises(ConfigError, match=r"log\.dirs is not set"):
        config(**others, log_dirs="")
    with pytest.raises(ConfigError, match="clients need one to connect to"):
        config(**others, listeners="CONTROLLER://127.0.0.1:9093")
    with pytest.raises(ConfigError, match="listeners = ''"):
        config(**others, listeners="PLAINTEXT://127.0.0.1:9092")
    with pytest.raises(ConfigError, match=r"node\.id = 1 is not among them"):
        config(controller_quorum_voters="2@127.0.0.1:9095,3@127.0.0.1:9097")
