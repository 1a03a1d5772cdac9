"""The nodes of a cluster on this machine: their settings, and the directories that know who votes.

DIR/node-1.properties   settings in Kafka's words: `ottla broker --config` of it runs the node by hand
DIR/node-1/             log.dirs
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.broker.controllers.formatting import format_initial, format_without_voters
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.broker.settings.endpoints import joined, parse_address
from ottla.broker.settings.quorum_settings import VoterPlace
from ottla.clock import Clock
from ottla.coordination.cluster.topic_configs import as_text
from ottla.errors import ConfigError
from ottla.free_ports import HeldPorts
from ottla.ports import HIGHEST_PORT
from ottla.properties import property_line, read_properties
from ottla.storage.directory.meta_properties import random_id

NODE_NAME = re.compile(r"node-(\d{1,3})(\.properties)?")
MOST_VOTERS = 5
"""More make each decision slower and hardly ever help."""
LEAST_FOR_A_MAJORITY = 3
HOST = "127.0.0.1"
PATIENCE = {
    "controller.quorum.election.timeout.ms": 250,
    "controller.quorum.election.backoff.max.ms": 250,
    "broker.heartbeat.interval.ms": 250,
    "broker.session.timeout.ms": 3000,
}
"""How soon nodes on one machine act where another is silent; Kafka's are made for networks."""


class LocalNode(NamedTuple):
    """What is known of a node before it runs."""

    node_id: int
    host: str
    port: int
    controller_port: int | None
    """None for a broker that does not vote."""
    directory_id: str


def plan(brokers: int, ports: HeldPorts, first: tuple[str, int] | None = None) -> list[LocalNode]:
    """Numbers from 1 on; the first of them vote. Ports from that of the `first` broker on, or such as nobody has; all of them are held."""
    voters = voter_count(brokers)
    host, port = first or (HOST, 0)
    if port:
        hold([(host, port + place) for place in range(brokers)], ports)
    return [
        LocalNode(
            number,
            host,
            port + number - 1 if port else ports.claim(host),
            ports.claim(HOST) if number <= voters else None,
            random_id(),
        )
        for number in range(1, brokers + 1)
    ]


def hold(places: Iterable[tuple[str, int]], ports: HeldPorts) -> None:
    """Keep them for the nodes that are to listen there."""
    for host, port in places:
        ports.keep(host, port)


def voter_count(brokers: int) -> int:
    """An odd number where there are enough: of four no more may be lost than of three."""
    if brokers <= LEAST_FOR_A_MAJORITY:
        return brokers
    return min(MOST_VOTERS, brokers - 1 + brokers % 2)


def settings_of(
    node: LocalNode, nodes: Sequence[LocalNode], directory: Path, more: Mapping[str, Any]
) -> dict[str, str]:
    """One node's, in Kafka's words; `more` are the user's, by Kafka's names or as keywords."""
    copies = min(len(nodes), LEAST_FOR_A_MAJORITY)
    in_sync = max(1, copies - 1)
    controllers = ",".join(f"{HOST}:{each.controller_port}" for each in nodes if each.controller_port)
    listeners = [f"PLAINTEXT://{joined(node.host, node.port)}"]
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
        # Said, since a group may begin before all nodes have come for the first time.
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        **PATIENCE,
    }
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {name: as_text(value) for name, value in (settings | given).items()}


def format_nodes(folder: Path, nodes: Sequence[LocalNode], more: Mapping[str, Any], clock: Clock) -> None:
    """Write the nodes' settings, and make their directories those of one new cluster."""
    cluster_id = random_id()
    voters = [
        VoterPlace(each.node_id, HOST, each.controller_port, each.directory_id)
        for each in nodes
        if each.controller_port
    ]
    for node in nodes:
        settings = settings_of(node, nodes, folder / f"node-{node.node_id}", more)
        config = read_config(settings)
        if config.combines:
            format_initial(config, cluster_id, voters, clock)
        elif config.joins:
            format_without_voters(config, cluster_id)
        lines = (property_line(name, value) for name, value in settings.items())
        file_of(folder, node.node_id).write_text("".join(lines), encoding="utf-8")


def read_nodes(folder: Path, more: Mapping[str, Any]) -> dict[int, BrokerConfig]:
    """The nodes that a folder has, by their numbers; `more` counts before what is written there.

    ConfigError where one of them has its directory and no settings, or the settings of a folder that was copied or moved.
    """
    found = {}
    given = {name.replace("_", "."): as_text(value) for name, value in more.items()}
    for number in range(1, node_count(folder) + 1):
        file = file_of(folder, number)
        try:
            written = {each.key: each.value for each in read_properties(file.read_text(encoding="utf-8"))}
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}; restore it from a backup") from error
        own = folder / f"node-{number}"
        if Path(written.get("log.dirs", "")).resolve() != own.resolve():
            raise ConfigError(
                f"{file} has log.dirs={written.get('log.dirs')}, and the node's directory here is {own}: if the folder was moved or "
                "copied, write that there; the ports beside it are still those of the first, so of two copies one may run"
            )
        found[number] = read_config(written | given)
    return found


def node_count(folder: Path) -> int:
    """The highest number of which there is anything."""
    names = (NODE_NAME.fullmatch(path.name) for path in folder.iterdir())
    return max((int(name[1]) for name in names if name), default=0)


def file_of(folder: Path, node_id: int) -> Path:
    return folder / f"node-{node_id}.properties"


def first_place(listen: str, brokers: int) -> tuple[str, int]:
    """Where the first of so many brokers listens, port 0 for free ones; ConfigError where the last could not."""
    host, port = parse_address("listen", listen, listen)
    if not host or port > HIGHEST_PORT - brokers + 1:
        raise ConfigError(
            f"listen = {listen!r}: must be host:port, and the ports after it are for the other brokers; such as {HOST}:9092, or {HOST}:0 for free ones"
        )
    return host, port


def ensure_as_asked(
    folder: Path, found: Mapping[int, BrokerConfig], brokers: int, first: tuple[str, int] | None
) -> None:
    """ConfigError where a folder has a cluster of another size, or at another place."""
    if len(found) != brokers:
        raise ConfigError(
            f"{folder} has a cluster of {len(found)}, and {brokers} are asked for: ask for {len(found)}, or choose another directory"
        )
    place = found[1].endpoints()[0]
    if first not in (None, (place.host, place.port), (place.host, 0)):
        raise ConfigError(
            f"{folder} has a cluster that begins at {place.host}:{place.port}, not at {joined(*first)}: listen there, or choose "
            "another directory"
        )
