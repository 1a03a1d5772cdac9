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
    """With one leader, over one connection."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = 0
        """What the next request says; 0 begins anew."""
        self._told: dict[Place, FetchPartition] = {}
        self._telling: dict[Place, FetchPartition] = {}

    def fill(self, request: FetchRequest, wanted: Wanted) -> None:
        """Put into a request what the leader does not know of what is wanted."""
        self._telling = dict(wanted)
        known = self._told if self.epoch else {}
        changed = [(place, each) for place, each in wanted.items() if known.get(place) != each]
        request.session_id, request.session_epoch = self.session_id, self.epoch
        request.topics = [FetchTopic(topic_id=place.topic_id, partitions=[each]) for place, each in changed]
        gone = [place for place in known if place not in wanted]
        request.forgotten_topics_data = [
            ForgottenTopic(topic_id=each.topic_id, partitions=[each.partition]) for each in gone
        ]

    def answered(self, response: FetchResponse) -> None:
        """Go on with the session, if it is one."""
        if response.error_code or response.session_id == NO_SESSION:
            self.lost()
            return
        self.session_id, self._told = response.session_id, self._telling
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def lost(self) -> None:
        """Nobody knows what the leader knows: tell everything again."""
        self.session_id, self.epoch, self._told = NO_SESSION, 0, {}

    def check(self) -> None:
        assert (self.session_id == NO_SESSION) == (self.epoch == 0)
        assert self.epoch or not self._told
