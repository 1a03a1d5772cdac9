"""The log directories of this broker's replicas, reported to the controllers (AssignReplicasToDirs, KIP-858).

The controllers elect only replicas in known directories.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from ottla.broker.event_loop.timers import Timers
from ottla.broker.registration.controller_channel import ChannelRequest, ControllerChannel
from ottla.clock import Clock
from ottla.coordination.cluster.records import NO_LEADER
from ottla.coordination.cluster.topic import LOST, ClusterTopic, PartitionState
from ottla.errors import name_of
from ottla.model import TopicPartition
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)

log = logging.getLogger(__name__)
AGAIN_SECONDS = 0.5


def has_all(state: PartitionState, broker: int) -> bool:
    """Return True if a replica that started empty is complete: its leader counts it in the ISR, or there is no other replica."""
    led = state.leader not in (NO_LEADER, broker) and broker in state.isr
    return led or state.replicas == (broker,) or state.leader == broker


class DirectoryAssignments:
    """The directories of all replicas of this broker. Belongs to the loop."""

    def __init__(
        self,
        place: Callable[[TopicPartition], UUID | None],
        node_id: int,
        epoch: Callable[[], int],
        channel: ControllerChannel,
        timers: Timers,
        clock: Clock,
        has_fewer_records: Callable[[TopicPartition, UUID], bool] = lambda partition, former: False,
    ) -> None:
        """`place` returns the directory of a replica, None if it has none.

        `has_fewer_records` is true for a replica with fewer records than it had in its former directory.
        """
        self._node_id = node_id
        self._place = place
        self._epoch = epoch
        self._channel = channel
        self._timers = timers
        self._clock = clock
        self._unsent: dict[tuple[UUID, int], UUID] = {}
        self._is_reporting = False
        self._has_fewer_records = has_fewer_records

    def record_assignment(self, topic: ClusterTopic, state: PartitionState) -> None:
        """Remember a replica that is in another directory than the controllers know.

        A replica that starts again after its former one was lost is reported only once it has what its leader has: the
        controllers could elect it otherwise.
        """
        place, partition = (topic.topic_id, state.index), TopicPartition(topic.name, state.index)
        directory, believed = self._place(partition), state.directories[state.replicas.index(self._node_id)]
        if (
            directory is None
            or believed == directory
            or (self._has_fewer_records(partition, believed) and not has_all(state, self._node_id))
        ):
            if self._unsent.get(place) != LOST:
                self._unsent.pop(place, None)
        else:
            self._unsent[place] = directory

    def remove_topic(self, topic: ClusterTopic, state: PartitionState) -> None:
        """Report that a replica must not be relied on, as if its directory were lost: it leaves the ISR and leads nothing.

        Once the metadata have that, `record_assignment` reports its directory again.
        """
        self._unsent[topic.topic_id, state.index] = LOST
        self.report()

    def report(self) -> None:
        """Send all remembered directories in one request. The metadata show when they are accepted."""
        if self._is_reporting or not self._unsent:
            return
        found: dict[UUID, list[RequestTopicData]] = {}
        for (topic_id, index), directory in self._unsent.items():
            found.setdefault(directory, []).append(RequestTopicData(topic_id, [RequestPartitionData(index)]))
        directories = [RequestDirectoryData(directory, topics) for directory, topics in found.items()]
        request = AssignReplicasToDirsRequest(self._node_id, self._epoch(), directories)
        sending, self._unsent = self._unsent, {}

        def done(answer: AssignReplicasToDirsResponse | None) -> None:
            self._is_reporting = False
            if answer is None or answer.error_code:
                why = "no controller responds" if answer is None else name_of(answer.error_code)
                log.warning("AssignReplicasToDirs failed error=%s; it is retried", why)
                self._unsent = sending | self._unsent
                self._timers.schedule(self._clock.monotonic() + AGAIN_SECONDS, self.report)
            else:
                self.report()  # what was remembered meanwhile

        self._is_reporting = True
        self._channel.send_request(ChannelRequest(request, 0, AssignReplicasToDirsResponse, done))
