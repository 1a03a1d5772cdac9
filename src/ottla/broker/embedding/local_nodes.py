"""The nodes of a local cluster: their settings, and directories that name the voters.

DIR/node-1.properties   Kafka's settings: `ottla broker --config` with this file runs the node DIR/node-1/
log.dirs
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.broker.controller.formatting import format_initial, format_without_voters
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.broker.settings.endpoints import join_address, parse_address
from ottla.broker.settings.quorum_settings import VoterAddress
from ottla.clock import Clock
from ottla.coordination.cluster.topic_configs import format_value
from ottla.errors import ConfigError
from ottla.free_ports import HeldPorts
from ottla.ports import HIGHEST_PORT
from ottla.properties import property_line, read_properties
from ottla.storage.directory.meta_properties import random_id

NODE_NAME = re.compile(r"node-(\d{1,3})(\.properties)?")
MOST_VOTERS = 5
"""More voters make each decision slower, and are hardly ever needed."""
LEAST_FOR_A_MAJORITY = 3
HOST = "127.0.0.1"
PATIENCE = {
    "controller.quorum.election.timeout.ms": 250,
    "controller.quorum.election.backoff.max.ms": 250,
    "broker.heartbeat.interval.ms": 250,
    "broker.session.timeout.ms": 3000,
}
"""Timeouts of nodes on one machine. Kafka's defaults are made for networks."""


class LocalNode(NamedTuple):
    """A node that may not have started."""

    node_id: int
    host: str
    port: int
    controller_port: int | None
    """None for a broker that does not vote."""
    directory_id: str


def plan_nodes(brokers: int, ports: HeldPorts, first: tuple[str, int] | None = None) -> list[LocalNode]:
    """Plan nodes with numbers from 1 on; the first ones vote.

    Their ports follow that of the `first` broker, or are free ones; all of them are reserved.
    """
    voters = count_voters(brokers)
    host, port = first or (HOST, 0)
    if port:
        reserve_ports([(host, port + place) for place in range(brokers)], ports)
    return [
        LocalNode(
            number,
            host,
            port + number - 1 if port else ports.claim_port(host),
            ports.claim_port(HOST) if number <= voters else None,
            random_id(),
        )
        for number in range(1, brokers + 1)
    ]


def reserve_ports(places: Iterable[tuple[str, int]], ports: HeldPorts) -> None:
    """Reserve the addresses for the nodes that will listen on them."""
    for host, port in places:
        ports.hold_given_port(host, port)


def count_voters(brokers: int) -> int:
    """Return an odd number of voters: four voters can lose no more than three."""
    if brokers <= LEAST_FOR_A_MAJORITY:
        return brokers
    return min(MOST_VOTERS, brokers - 1 + brokers % 2)


def build_settings(
    node: LocalNode, nodes: Sequence[LocalNode], directory: Path, more: Mapping[str, Any]
) -> dict[str, str]:
    """Return the settings of one node; `more` are the user's, by Kafka's names or as keywords."""
    copies = min(len(nodes), LEAST_FOR_A_MAJORITY)
    in_sync = max(1, copies - 1)
    controllers = ",".join(f"{HOST}:{each.controller_port}" for each in nodes if each.controller_port)
    listeners = [f"PLAINTEXT://{join_address(node.host, node.port)}"]
    if node.controller_port:
        listeners.append(f"CONTROLLER://{HOST}:{node.controller_port}")
    settings: dict[str, Any] = {
        "process.roles": "broker,controller" if node.controller_port else "broker",
        "node.id": node.node_id,
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.bootstrap.servers": controllers,
        "log.dirs": directory,
        "cordoned.log.dirs": "",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        # Set, since a group may start before all nodes have registered for the first time.
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        **PATIENCE,
    }
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {name: format_value(value) for name, value in (settings | given).items()}


def format_nodes(folder: Path, nodes: Sequence[LocalNode], more: Mapping[str, Any], clock: Clock) -> None:
    """Write the nodes' settings, and format their directories for one new cluster."""
    cluster_id = random_id()
    voters = [
        VoterAddress(each.node_id, HOST, each.controller_port, each.directory_id)
        for each in nodes
        if each.controller_port
    ]
    for node in nodes:
        settings = build_settings(node, nodes, folder / f"node-{node.node_id}", more)
        config = read_config(settings)
        if config.has_both_roles:
            format_initial(config, cluster_id, voters, clock)
        elif config.joins_cluster:
            format_without_voters(config, cluster_id)
        lines = (property_line(name, value) for name, value in settings.items())
        find_settings_file(folder, node.node_id).write_text("".join(lines), encoding="utf-8")


def read_nodes(folder: Path, more: Mapping[str, Any]) -> dict[int, BrokerConfig]:
    """Return the configs of the nodes in a folder, by their numbers. Settings in `more` have priority.

    Raise ConfigError if a node has a directory without settings, or settings of a folder that was copied or moved.
    """
    found = {}
    given = {name.replace("_", "."): format_value(value) for name, value in more.items()}
    for number in range(1, count_nodes(folder) + 1):
        file = find_settings_file(folder, number)
        try:
            written = {each.key: each.value for each in read_properties(file.read_text(encoding="utf-8"))}
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}; restore it from a backup") from error
        own = folder / f"node-{number}"
        if Path(written.get("log.dirs", "")).resolve() != own.resolve():
            raise ConfigError(
                f"{file} has log.dirs={written.get('log.dirs')}, and the node's directory here is {own}: if the folder was moved or "
                "copied, change it there; the ports are still those of the original, so only one of the two may run"
            )
        found[number] = read_config(written | given)
    return found


def count_nodes(folder: Path) -> int:
    """Return the highest node id that has a file in the folder."""
    names = (NODE_NAME.fullmatch(path.name) for path in folder.iterdir())
    return max((int(name[1]) for name in names if name), default=0)


def find_settings_file(folder: Path, node_id: int) -> Path:
    return folder / f"node-{node_id}.properties"


def parse_first_address(listen: str, brokers: int) -> tuple[str, int]:
    """Return the address of the first broker, port 0 for free ports.

    Raise ConfigError if the last broker's port would be too high.
    """
    host, port = parse_address("listen", listen, listen)
    if not host or port > HIGHEST_PORT - brokers + 1:
        raise ConfigError(
            f"listen = {listen!r}: must be host:port, and the ports after it are for the other brokers; such as {HOST}:9092, or {HOST}:0 for free ones"
        )
    return host, port


def check_requested(
    folder: Path, found: Mapping[int, BrokerConfig], brokers: int, first: tuple[str, int] | None
) -> None:
    """Raise ConfigError if a folder has a cluster of another size, or with another first address."""
    if len(found) != brokers:
        raise ConfigError(
            f"{folder} has a cluster of {len(found)} nodes, and brokers={brokers}: set brokers={len(found)}, or choose another directory"
        )
    place = found[1].endpoints()[0]
    if first not in (None, (place.host, place.port), (place.host, 0)):
        raise ConfigError(
            f"{folder} has a cluster that begins at {place.host}:{place.port}, not at {join_address(*first)}: listen there, or choose "
            "another directory"
        )
