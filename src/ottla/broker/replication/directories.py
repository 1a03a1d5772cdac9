"""Where copies lie on this broker, told to the controllers (AssignReplicasToDirs): they elect only who has its directory (KIP-858)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from ottla.broker.controllers.controller_channel import ControllerChannel, Errand
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.records import NO_LEADER
from ottla.coordination.cluster.topic import LOST, PartitionState, Topic
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
    """Whether a copy may be relied on that began empty: its leader says so, or there is no other."""
    led = state.leader not in (NO_LEADER, broker) and broker in state.isr
    return led or state.replicas == (broker,) or state.leader == broker


class Directories:
    """Of all copies that this broker has. Belongs to the loop."""

    def __init__(
        self,
        place: Callable[[TopicPartition], UUID | None],
        node_id: int,
        epoch: Callable[[], int],
        channel: ControllerChannel,
        timers: Timers,
        clock: Clock,
        begins_anew: Callable[[TopicPartition, UUID], bool] = lambda partition, former: False,
    ) -> None:
        """`place` says in which directory a copy is, None where that one is not there; `begins_anew` whether it is less than one was elsewhere."""
        self._node_id = node_id
        self._place = place
        self._epoch = epoch
        self._channel = channel
        self._timers = timers
        self._clock = clock
        self._untold: dict[tuple[UUID, int], UUID] = {}
        self._telling = False
        self._begins_anew = begins_anew

    def note(self, topic: Topic, state: PartitionState) -> None:
        """Remember a copy that is somewhere else than the controllers believe.

        One that begins anew here, in place of one that is lost, is not told of before it has what its leader has: they would have it lead.
        """
        place, partition = (topic.topic_id, state.index), TopicPartition(topic.name, state.index)
        directory, believed = self._place(partition), state.directories[state.replicas.index(self._node_id)]
        if (
            directory is None
            or believed == directory
            or (self._begins_anew(partition, believed) and not has_all(state, self._node_id))
        ):
            if self._untold.get(place) != LOST:
                self._untold.pop(place, None)
        else:
            self._untold[place] = directory

    def give_up(self, topic: Topic, state: PartitionState) -> None:
        """Tell that a copy is not to be counted on, as if its directory were gone: it is in sync no more, and leads nothing.

        Once the metadata say so, `note` sets right where it is.
        """
        self._untold[topic.topic_id, state.index] = LOST
        self.tell()

    def tell(self) -> None:
        """Tell of those, all at once; the metadata say when they are heard."""
        if self._telling or not self._untold:
            return
        found: dict[UUID, list[RequestTopicData]] = {}
        for (topic_id, index), directory in self._untold.items():
            found.setdefault(directory, []).append(RequestTopicData(topic_id, [RequestPartitionData(index)]))
        directories = [RequestDirectoryData(directory, topics) for directory, topics in found.items()]
        request = AssignReplicasToDirsRequest(self._node_id, self._epoch(), directories)
        told, self._untold = self._untold, {}

        def done(answer: AssignReplicasToDirsResponse | None) -> None:
            self._telling = False
            if answer is None or answer.error_code:
                why = "nobody answers" if answer is None else name_of(answer.error_code)
                log.warning("the controllers do not hear in which directory copies are: %s", why)
                self._untold = told | self._untold
                self._timers.at(self._clock.monotonic() + AGAIN_SECONDS, self.tell)
            else:
                self.tell()  # of what has come to be known meanwhile

        self._telling = True
        self._channel.ask(Errand(request, 0, AssignReplicasToDirsResponse, done))
