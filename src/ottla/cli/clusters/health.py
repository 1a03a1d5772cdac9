"""Query the health of a cluster, for `ottla cluster describe` and `ottla doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.errors import KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ClusterDescription, TopicDescription
    from ottla.client.admin.health import ClusterHealth

MIN_ISR = "min.insync.replicas"


def describe_health(admin: Admin, topics: Iterable[TopicDescription]) -> tuple[ClusterDescription, ClusterHealth]:
    """Return the cluster and its health. Facts that the user may not see, or that an older broker does not have, are left out."""
    from ottla.client.admin.health import health_of

    topics = list(topics)
    cluster, quorum = admin.describe_cluster(), None
    with suppress(KafkaError, UnsupportedVersionError):
        cluster = admin.describe_cluster(include_fenced_brokers=True)
    with suppress(KafkaError, UnsupportedVersionError):
        quorum = admin.describe_metadata_quorum()
    partitions = [each for topic in topics for each in topic.partitions]
    return cluster, health_of(cluster, quorum, partitions, min_isr_of(admin, [topic.name for topic in topics]))


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
        "voters": None
        if quorum is None
        else {"voters": quorum.voters, "running": quorum.running, "majority": quorum.majority},
    }
