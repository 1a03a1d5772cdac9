"""The metadata of a node that is broker and controller: the broker role reads what the controller role has committed.

    committed ──► ControllerSnapshots ──► applied(records) ──► partitions, configs, quotas …
    a leader is elected ──────────────► on_leader() ──► the broker reports to it

A node without the controller role fetches a copy of the log instead (`MetadataFetcher`).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.controller.controller_snapshots import Applied, ControllerSnapshots
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.registration.controller_channel import LocalController
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft


class PublishedMetadata:
    """Belongs to the loop, except for `leader`, which any thread may read."""

    def __init__(
        self,
        controller: LocalController,
        snapshots: ControllerSnapshots,
        raft: Raft,
        place: Callable[[int], Address | None],
    ) -> None:
        """`place` returns the address of a voter, if it is known."""
        self.controller = controller
        self._snapshots = snapshots
        self._raft = raft
        self._place = place
        self._on_leader: Callable[[], None] | None = None
        self._known_leader: tuple[int | None, int] = (None, 0)
        self.image: ObservedMetadata = snapshots.share()
        """The committed metadata. OttlaError if it cannot be read."""

    @property
    def leader(self) -> Address | None:
        """The address of the active controller, if it is known."""
        leader_id = self._raft.leader_id
        return None if leader_id is None else self._place(leader_id)

    def connect(self, applied: Applied, on_leader: Callable[[], None]) -> None:
        """Report each change of the metadata and each new active controller from now on."""
        self._snapshots.subscribe(applied)
        self._on_leader = on_leader

    def publish(self) -> None:
        """Report what has changed since the last time. Called at the end of each turn of the loop."""
        self._snapshots.publish()
        known = self._raft.leader_id, self._raft.epoch
        if known != self._known_leader and self._on_leader is not None:
            self._known_leader = known
            if known[0] is not None:
                self._on_leader()

    def start(self) -> None:
        """Do nothing: the controller role runs already."""

    def close(self) -> None:
        """Stop publishing to a broker that stops; the controller may continue."""
        self._on_leader = None
        self._snapshots.subscribe(None)
