"""The follower's side of a fetch session: only partitions that changed since the last request are sent (KIP-227). Pure.

    all partitions, epoch 0 ──► session id ──► changes, epoch 1, 2, … ──► an error or a lost response: all partitions again

A leader without room returns no session; then every request has all partitions. A partition that a request omits keeps its fetch offset: a
follower at the end of its log need not be sent and still counts as fetching.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0


class ReplicaPlace(NamedTuple):
    """A partition by its topic's id."""

    topic_id: UUID
    partition: int


Wanted = Mapping[ReplicaPlace, FetchPartition]


class FollowerSession:
    """With one leader, over one connection. Costs what changed, not what is followed."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = 0
        """The epoch of the next request; 0 starts a new session."""
        self.is_patient = False
        """True if the leader may delay its response. Not for the first request of a connection: it has all partitions, and until the session
        exists, an event for any of them requires a request for all. A leader that gives no session is sent patient requests.
        """
        self._reported: dict[ReplicaPlace, FetchPartition] = {}
        self._unconfirmed: dict[ReplicaPlace, FetchPartition] = {}
        self._left: set[ReplicaPlace] = set()
        """Partitions that are no longer fetched, to be sent in the next request."""
        self._forgetting: list[ReplicaPlace] = []

    def remove_partition(self, place: ReplicaPlace) -> None:
        """Remove a partition from the next requests until it is added again."""
        self._left.add(place)

    def fill_request(self, request: FetchRequest, wanted: Wanted) -> None:
        """Put into a request what the leader does not know of what is wanted: all of it at epoch 0, later what may have changed."""
        self._unconfirmed = {place: each for place, each in wanted.items() if self._reported.get(place) != each}
        self._forgetting = [place for place in self._left if place in self._reported and place not in wanted]
        self._left.clear()
        request.session_id, request.session_epoch = self.session_id, self.epoch
        request.topics = [
            FetchTopic(topic_id=place.topic_id, partitions=[each]) for place, each in self._unconfirmed.items()
        ]
        request.forgotten_topics_data = [
            ForgottenTopic(topic_id=each.topic_id, partitions=[each.partition]) for each in self._forgetting
        ]

    def handle_response(self, response: FetchResponse) -> None:
        """Handle a response: start or continue the session."""
        self.is_patient = True
        if response.error_code or response.session_id == NO_SESSION:
            self.reset()
            return
        self.session_id = response.session_id
        self._reported.update(self._unconfirmed)
        for place in self._forgetting:
            del self._reported[place]
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1

    def handle_disconnect(self) -> None:
        """Handle a failed request: the session continues on another connection at epoch 0."""
        self.reset()
        self.is_patient = False

    def reset(self) -> None:
        """Forget what the leader knows: the next request has all partitions."""
        self.session_id, self.epoch, self._reported = NO_SESSION, 0, {}
        self._left.clear()

    def check(self) -> None:
        assert (self.session_id == NO_SESSION) == (self.epoch == 0)
        assert self.epoch or not self._reported
