"""The brokers of a cluster that controllers keep, as clients are told of them.

A Metadata response to a client of librdkafka lists a broker for some seconds after it has left, without any partition that it leads. A
broker that is restarted is back by then, and the client does not see it disappear. librdkafka from 2.10 on ends the thread of a broker
that is not listed, and a `send_offsets_to_transaction` that waits for that broker as the group's coordinator never returns (librdkafka
issue 5511). Other clients see what Kafka shows them: the admin client of Java would wait a minute for a broker that is listed and away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.metadata import ClusterMetadata

LISTED_SECONDS = 5.0
"""How long a broker that has left is listed: a restart takes one to three seconds, and an admin client may wait for a listed broker."""


class KnownBroker(NamedTuple):
    """A broker, and where clients reach it who came by a listener of that name."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Brokers:
    """Brokers that registered with the controllers, as the copy of the metadata has them."""

    def __init__(self, cluster: Runtime[ClusterMetadata]) -> None:
        self._cluster = cluster
        self._unfenced: set[int] | None = None
        """Those that were not fenced at the last change; None before the metadata are known."""
        self._left_at: dict[int, float] = {}
        """When each broker that is fenced now was noticed to have left."""

    def note_start(self, now: float) -> None:
        """Begin to notice brokers that leave. Those that were shut down before may be about to return, too."""
        registrations = self._cluster.machine.registrations.values()
        self._unfenced = {each.broker_id for each in registrations if not each.fenced}
        self._left_at = {each.broker_id: now for each in registrations if each.fenced and each.in_controlled_shutdown}

    def note_changes(self, now: float) -> None:
        """Notice which brokers have left or returned, after each change of the metadata."""
        if self._unfenced is None:
            return
        unfenced = {each.broker_id for each in self._cluster.machine.registrations.values() if not each.fenced}
        for broker in self._unfenced - unfenced:
            self._left_at[broker] = now
        for broker in unfenced & self._left_at.keys():
            del self._left_at[broker]
        self._unfenced = unfenced

    def listed(self, listener: str, software: str, now: float) -> Iterator[KnownBroker]:
        """Return the brokers for a Metadata response: those that are alive, and for librdkafka those that left a moment ago."""
        for each in self.reached_by(listener):
            if not each.fenced or (is_librdkafka(software) and self._has_just_left(each.node_id, now)):
                yield each

    def _has_just_left(self, broker: int, now: float) -> bool:
        left_at = self._left_at.get(broker)
        return left_at is not None and now - left_at < LISTED_SECONDS

    def reached_by(self, listener: str) -> Iterator[KnownBroker]:
        """Those that have a listener of that name, fenced ones too, in order of their numbers."""
        for _, each in sorted(self._cluster.machine.registrations.items()):
            place = each.listener(listener)
            if place is not None:
                yield KnownBroker(each.broker_id, place.host, place.port, each.rack, each.fenced)

    def alive(self, listener: str) -> dict[int, KnownBroker]:
        """Those that clients may be sent to, by their numbers."""
        return {each.node_id: each for each in self.reached_by(listener) if not each.fenced}

    def racks(self, listener: str) -> dict[int, str | None]:
        """Where those are that clients may be sent to, by their numbers."""
        return {id_: each.rack for id_, each in self.alive(listener).items()}


def is_librdkafka(software: str) -> bool:
    """True if a client's software is librdkafka or is built on it, by the name that it gave in ApiVersions (KIP-511)."""
    return "rdkafka" in software or software.startswith("confluent-kafka")
