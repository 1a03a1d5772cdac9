"""A follower's side of a fetch session: what its leader was told last, so that only changes are told (KIP-227). Pure.

    everything, epoch 0 ──► session id ──► what changed, epoch 1, 2, … ──► refused or lost: everything again

A leader that has no room gives no session; then everything is told each time. The offset of a partition that is not named is what it
was: a follower at the end of its log says nothing, and is heard all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0


class Place(NamedTuple):
    """A partition by its topic's id."""

    topic_id: UUID
    partition: int


Wanted = Mapping[Place, FetchPartition]


class FollowerSession:
    """With one leader, over one connection. Costs what changed, not what is followed."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = 0
        """What the next request says; 0 begins anew."""
        self.is_patient = False
        """Whether the leader may wait with its answer. Not with the first one on a connection: it names everything, and until the session
        is there whatever becomes of any of it wakes a question about all. A leader that gives or keeps no session is asked patiently."""
        self._told: dict[Place, FetchPartition] = {}
        self._telling: dict[Place, FetchPartition] = {}
        self._left: set[Place] = set()
        """Not wanted any more, which the leader is not told yet."""
        self._forgetting: list[Place] = []

    def leave(self, place: Place) -> None:
        """It is not wanted until it is again."""
        self._left.add(place)

    def fill(self, request: FetchRequest, wanted: Wanted) -> None:
        """Put into a request what the leader does not know of what is wanted: all of it at epoch 0, later what may have changed."""
        self._telling = {place: each for place, each in wanted.items() if self._told.get(place) != each}
        self._forgetting = [place for place in self._left if place in self._told and place not in wanted]
        self._left.clear()
        request.session_id, request.session_epoch = self.session_id, self.epoch
        request.topics = [
            FetchTopic(topic_id=place.topic_id, partitions=[each]) for place, each in self._telling.items()
        ]
        request.forgotten_topics_data = [
            ForgottenTopic(topic_id=each.topic_id, partitions=[each.partition]) for each in self._forgetting
        ]

    def answered(self, response: FetchResponse) -> None:
        """Go on with the session, if it is one."""
        self.is_patient = True
        if response.error_code or response.session_id == NO_SESSION:
            self.lost()
            return
        self.session_id = response.session_id
        self._told.update(self._telling)
        for place in self._forgetting:
            del self._told[place]
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def lost_connection(self) -> None:
        """The leader was not heard: it is asked anew, on another connection."""
        self.lost()
        self.is_patient = False

    def lost(self) -> None:
        """Nobody knows what the leader knows: tell everything again."""
        self.session_id, self.epoch, self._told = NO_SESSION, 0, {}
        self._left.clear()

    def check(self) -> None:
        assert (self.session_id == NO_SESSION) == (self.epoch == 0)
        assert self.epoch or not self._told
