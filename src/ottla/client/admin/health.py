"""The unavailable nodes of a cluster, and the effects of one more failure. Pure; the facts come from an `Admin`.

A broker is away if it is registered and fenced, or has replicas and is not listed. A voter or an observer is away if it has not
fetched from the leader of the quorum for `AWAY_MS`; a follower that is well fetches at least twice a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import few_of
from ottla.model import PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin.cluster import ClusterDescription
    from ottla.client.admin.quorum import QuorumInfo, QuorumReplicaState

AWAY_MS = 3_000
MOST_NAMES = 3
BROKER, VOTER, OBSERVER = "broker", "voter", "observer"


class Absence(NamedTuple):
    """A node that is away, in one of its roles."""

    role: str
    node_id: int
    address: str | None
    """`host:port`; None if the cluster does not list it."""
    since_ms: int | None
    """When the leader of the quorum received its last fetch, in ms since 1970; None if that is not known."""


class BrokerFailure(NamedTuple):
    """The effects if one broker failed that runs now."""

    broker_id: int
    offline: tuple[TopicPartition, ...]
    """Partitions that would have no leader."""
    below_min_isr: tuple[TopicPartition, ...]
    """Partitions that would reject acks=all, and accept it now."""

    @property
    def has_cost(self) -> bool:
        return bool(self.offline or self.below_min_isr)


class QuorumMargin(NamedTuple):
    """The voters that run, and the number that a majority takes."""

    voters: int
    running: int

    @property
    def majority(self) -> int:
        return self.voters // 2 + 1

    @property
    def can_survive_one_more(self) -> bool:
        """True if a majority is left when one more voter fails. A single voter is all that there can be."""
        return self.voters == 1 or self.running > self.majority


class ClusterHealth(NamedTuple):
    """Nodes that are away, and the worst that one more failure could do."""

    absences: tuple[Absence, ...]
    worst: BrokerFailure | None
    """None in a cluster of one broker."""
    quorum: QuorumMargin | None
    """None if the quorum could not be described."""
    is_quorum_silent: bool = False
    """True if no active controller answered: the quorum may have lost its majority, and nodes that died since are not listed as away."""


def health_of(
    cluster: ClusterDescription,
    quorum: QuorumInfo | None,
    partitions: Iterable[PartitionInfo],
    min_isr: Mapping[str, int],
) -> ClusterHealth:
    """Return the health of a cluster. `min_isr` has `min.insync.replicas` by topic; a topic without an entry has 1.

    `cluster` was described with its fenced brokers.
    """
    partitions = list(partitions)
    running = {node.node_id for node in cluster.nodes}
    registered = {node.node_id: str(node) for node in cluster.fenced_nodes}
    away = sorted({*registered, *(id_ for each in partitions for id_ in each.replicas)} - running)
    fetched = last_fetches(quorum)
    absences = [Absence(BROKER, id_, registered.get(id_), fetched.get(id_)) for id_ in away]
    margin = None
    if quorum is not None:
        silent = [each for each in quorum.voters if is_silent(quorum, each)]
        absences += [absence_of(VOTER, quorum, each) for each in silent]
        margin = QuorumMargin(len(quorum.voters), len(quorum.voters) - len(silent))
        absences += [
            absence_of(OBSERVER, quorum, each)
            for each in quorum.observers
            if is_silent(quorum, each) and each.replica_id not in {*away, *running}
        ]
    worst = None
    if len(running | set(away)) > 1 and running:
        failures = [failure_of(id_, partitions, min_isr) for id_ in sorted(running)]
        worst = max(failures, key=lambda each: (len(each.offline), len(each.below_min_isr)))
    return ClusterHealth(tuple(absences), worst, margin)


def failure_of(broker: int, partitions: Iterable[PartitionInfo], min_isr: Mapping[str, int]) -> BrokerFailure:
    """Return the partitions that would suffer if this broker failed."""
    offline, below = [], []
    for each in partitions:
        left = set(each.in_sync_replicas) - {broker}
        if each.leader < 0 or broker not in each.in_sync_replicas:
            continue
        needed = min(min_isr.get(each.topic, 1), len(each.replicas))
        if not left:
            offline.append(TopicPartition(each.topic, each.partition))
        elif len(left) < needed <= len(each.in_sync_replicas):
            below.append(TopicPartition(each.topic, each.partition))
    return BrokerFailure(broker, tuple(offline), tuple(below))


def newest_fetch_ms(quorum: QuorumInfo) -> int | None:
    """Return the time at the leader when it described the quorum: it says of itself that it has caught up now."""
    return next((each.last_caught_up_timestamp for each in quorum.voters if each.replica_id == quorum.leader_id), None)


def is_silent(quorum: QuorumInfo, replica: QuorumReplicaState) -> bool:
    """Return True if the leader has received no fetch of a replica for `AWAY_MS`, or none since it was elected."""
    now_ms = newest_fetch_ms(quorum)
    if now_ms is None or replica.replica_id == quorum.leader_id:
        return False
    return replica.last_fetch_timestamp is None or now_ms - replica.last_fetch_timestamp > AWAY_MS


def last_fetches(quorum: QuorumInfo | None) -> dict[int, int]:
    """Return the time of the last fetch of each voter and observer, by its node id."""
    replicas = () if quorum is None else (*quorum.observers, *quorum.voters)
    return {each.replica_id: each.last_fetch_timestamp for each in replicas if each.last_fetch_timestamp is not None}


def absence_of(role: str, quorum: QuorumInfo, replica: QuorumReplicaState) -> Absence:
    endpoints = quorum.nodes.get(replica.replica_id, ())
    address = f"{endpoints[0].host}:{endpoints[0].port}" if endpoints else None
    return Absence(role, replica.replica_id, address, replica.last_fetch_timestamp)


def absence_sentence(absence: Absence, now_ms: int) -> str:
    """Return a description such as `broker 3 (127.0.0.1:9094) is away since 2026-11-29 12:30:04 (95 s)`."""
    place = f" ({absence.address})" if absence.address else ""
    if absence.since_ms is None:
        return f"{absence.role} {absence.node_id}{place} is away, since before the leader of the quorum was elected"
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(absence.since_ms / 1000))
    seconds = max(0, now_ms - absence.since_ms) // 1000
    return f"{absence.role} {absence.node_id}{place} is away since {moment} ({seconds:,} s)"


def next_failure_sentence(health: ClusterHealth) -> str:
    """Return the effects of one more failure; "" if nothing is known."""
    if health.is_quorum_silent:
        return ""
    parts = []
    worst, quorum = health.worst, health.quorum
    if worst is not None and worst.has_cost:
        effects = []
        if worst.offline:
            effects.append(f"{format_count(len(worst.offline))} would have no leader ({format_few(worst.offline)})")
        if worst.below_min_isr:
            effects.append(
                f"{format_count(len(worst.below_min_isr))} would be below min.insync.replicas and reject acks=all ({format_few(worst.below_min_isr)})"
            )
        parts.append(f"if broker {worst.broker_id} failed, {' and '.join(effects)}")
    elif worst is not None:
        parts.append("any one broker may fail, and every partition keeps a leader and min.insync.replicas")
    if quorum is not None and not quorum.can_survive_one_more:
        parts.append(
            f"if one more voter failed, the quorum would lose its majority ({quorum.running} of {quorum.voters} run, {quorum.majority} are "
            "needed): no leader is elected and no topic created then"
        )
    return "; ".join(parts)


def format_count(count: int) -> str:
    return f"{count:,} partition{'s' * (count != 1)}"


def format_few(partitions: Iterable[TopicPartition]) -> str:
    """Return the first names, and how many more there are."""
    return few_of(sorted(map(str, partitions)), MOST_NAMES)
