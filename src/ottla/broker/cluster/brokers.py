"""The brokers of a cluster that controllers keep, as clients are told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.metadata import ClusterMetadata


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
