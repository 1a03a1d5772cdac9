"""`ottla storage`, and a broker that is to join a cluster and cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import ottla

CLUSTER = "b3R0bGEtcml2YWwta2Fma2"
NOBODY = "127.0.0.1:1"
"""An address at which no controller is."""


def properties(folder: Path, **changed: str) -> Path:
    """The settings of a broker that joins."""
    settings = {
        "process.roles": "broker",
        "node.id": "7",
        "controller.quorum.bootstrap.servers": NOBODY,
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
    } | {name.replace("_", "."): value for name, value in changed.items()}
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def format_for(file: Path, cluster: str = CLUSTER) -> str:
    """What is said to it."""
    result = ottla("storage", "format", "-t", cluster, "-c", file, "--no-initial-controllers")
    return result.out + result.err


def test_a_directory_is_formatted_once_for_one_cluster_and_node(tmp_path: Path) -> None:
    file = properties(tmp_path)
    assert format_for(file) == f"formatted {tmp_path}/data for node 7 of cluster {CLUSTER}\n"
    assert f"cluster.id={CLUSTER}\n" in (tmp_path / "data" / "meta.properties").read_text()
    assert "is formatted already" in format_for(file)


def test_an_id_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "the cluster id 'mine' cannot be" in format_for(properties(tmp_path), "mine")


def test_a_random_id_is_one_that_a_directory_can_be_formatted_with(tmp_path: Path) -> None:
    drawn = ottla("storage", "random-uuid").out.strip()
    assert f"of cluster {drawn}" in format_for(properties(tmp_path), drawn)


def test_who_is_a_cluster_by_itself_needs_no_format(tmp_path: Path) -> None:
    assert "is not that of a broker that joins a cluster" in format_for(
        properties(tmp_path, process_roles="broker,controller")
    )


def test_a_directory_of_no_cluster_is_not_joined_with(tmp_path: Path) -> None:
    result = ottla("broker", "--config", properties(tmp_path))
    assert result.status == 1
    assert "has no meta.properties" in result.err
    assert "ottla storage format" in result.err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"controller_quorum_bootstrap_servers": "here"}, "'here' must be HOST:PORT"),
        ({"listeners": "PLAINTEXT://0.0.0.0:0"}, "set advertised.listeners = PLAINTEXT://HOST:PORT"),
        (
            {"listener_security_protocol_map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT"},
            "sasl.mechanism.controller.protocol = GSSAPI: listener CONTROLLER speaks SASL_SSL",
        ),
    ],
)
def test_settings_that_cannot_be_joined_with_are_refused(tmp_path: Path, changed: dict[str, str], says: str) -> None:
    result = ottla("broker", "--config", properties(tmp_path, **changed))
    assert result.status == 2
    assert says in result.err


def test_where_no_controller_answers_it_says_what_to_look_at(tmp_path: Path) -> None:
    file = properties(tmp_path, initial_broker_registration_timeout_ms="200")
    format_for(file)
    result = ottla("broker", "--config", file)
    assert result.status == 1
    assert "no controller has registered broker 7" in result.err
    assert "controller.quorum.bootstrap.servers" in result.err
