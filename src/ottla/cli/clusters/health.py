"""Query the health of a cluster, for `ottla cluster describe` and `ottla doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.errors import KafkaError, KafkaTimeoutError, UnsupportedVersionError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ClusterDescription, TopicDescription
    from ottla.client.admin.health import ClusterHealth
    from ottla.model import Node

NO_ACTIVE_CONTROLLER = (
    "no active controller answers: the quorum has probably lost its majority, and brokers and partitions are shown as of its last decision",
    "start the voters that the log of a running controller names as missing",
)
"""The observation and its remedy."""
MIN_ISR = "min.insync.replicas"


def describe_health(admin: Admin, topics: Iterable[TopicDescription]) -> tuple[ClusterDescription, ClusterHealth]:
    """Return the cluster and its health. Facts that the user may not see, or that an older broker does not have, are left out."""
    from ottla.client.admin.health import health_of

    topics = list(topics)
    cluster, quorum, is_silent = admin.describe_cluster(), None, False
    with suppress(KafkaError, UnsupportedVersionError):
        cluster = admin.describe_cluster(include_fenced_brokers=True)
    min_isr = min_isr_of(admin, [topic.name for topic in topics])
    # Last: without an active controller the request stays open, and the broker's connection is occupied.
    try:
        quorum = admin.describe_metadata_quorum()
    except KafkaTimeoutError:
        is_silent = True
    except (KafkaError, UnsupportedVersionError):
        pass
    partitions = [each for topic in topics for each in topic.partitions]
    return cluster, health_of(cluster, quorum, partitions, min_isr)._replace(is_quorum_silent=is_silent)


def describe_silence(nodes: Iterable[Node]) -> list[str]:
    """Return lines about a cluster without an active controller that answers, with the brokers that refuse connections."""
    from ottla.cli.doctor.remote import check_addresses

    nodes = list(nodes)
    found = zip(nodes, check_addresses((node.host, node.port) for node in nodes), strict=True)
    return [
        "; ".join(NO_ACTIVE_CONTROLLER),
        *(
            f"broker {node.node_id} ({node}) cannot be reached: {trouble}"
            for node, facts in found
            if (trouble := facts.unreached or facts.unresolved)
        ),
    ]


def min_isr_of(admin: Admin, topics: Iterable[str]) -> Mapping[str, int]:
    """Return `min.insync.replicas` by topic; an empty mapping if the configs may not be seen."""
    from ottla.client.admin import ConfigResource

    resources = {ConfigResource("topic", name): name for name in topics}
    if not resources:
        return {}
    try:
        found = admin.describe_configs(resources)
    except (KafkaError, UnsupportedVersionError):
        return {}
    values = {name: found[resource].get(MIN_ISR) for resource, name in resources.items()}
    return {name: int(entry.value) for name, entry in values.items() if entry is not None and entry.value}


def health_object(health: ClusterHealth) -> dict[str, Any]:
    """Return the health as JSON has it."""
    worst, quorum = health.worst, health.quorum
    return {
        "away": [each._asdict() for each in health.absences],
        "next_failure": None
        if worst is None
        else {
            "broker": worst.broker_id,
            "offline": list(map(str, worst.offline)),
            "below_min_isr": list(map(str, worst.below_min_isr)),
        },
        "is_quorum_silent": health.is_quorum_silent,
        "voters": None
        if quorum is None
        else {"voters": quorum.voters, "running": quorum.running, "majority": quorum.majority},
    }
