"""The committed metadata of a voter, and snapshots of it, which each voter makes for itself (KIP-630).

    committed ──► replayed ──► image ──► the broker role of this node, at the end of the turn
                                 └──► after so many bytes or so long a snapshot, written by a disk thread; then the old part of the log is deleted

The active controller's own state is ahead of the committed one and may be dropped, so it is not used here. A snapshot is
sent to a node whose log ends before this one begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.machines.observed_metadata import ObservedMetadata
from ottla.broker.machines.observed_snapshots import Beside, SnapshotRules, Work
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import CorruptRecordError, KafkaError
from ottla.protocol.schema import Message

logger = logging.getLogger(__name__)
Done = Callable[[BaseException | None], None]
Applied = Callable[[list[Message] | None], None]
"""Takes the records that were applied to the metadata; None if a snapshot has replaced all of it."""


class CommittedMetadata(ObservedMetadata):
    """Reads the log; only the state machine of the quorum changes it."""

    def reload(self) -> None:
        """Read the newest snapshot again. CorruptRecordError, KafkaError if there is none for the start of the log."""
        self.machine = self._build()

    def _go_on_at(self, offset: int) -> None:
        raise CorruptRecordError(f"no snapshot in {self.log.directory} stands for what was before its log")


class ControllerSnapshots:
    """Belongs to the loop, except for the work that disk threads do."""

    def __init__(
        self, log: QuorumLog, rules: SnapshotRules, clock: Clock, beside: Beside, told: Callable[[], None]
    ) -> None:
        """`told` is called when there is another snapshot, and perhaps less of the log."""
        self._log = log
        self._rules = rules
        self._clock = clock
        self._submit = beside
        self._told = told
        self._image: CommittedMetadata | None = None
        self._applied: Applied | None = None
        self._is_shared = False
        """True if the broker role of this node reads the metadata here."""
        self.begin_anew()
        self._records: list[Message] | None = []
        """The records that were applied since the last `publish`; None after a snapshot."""
        self._published = 0 if self._image is None else self._image.applied

    def share(self) -> ObservedMetadata:
        """Return the committed metadata for the broker role. CorruptRecordError, KafkaError if it cannot be read."""
        self._is_shared = True
        if self._image is None:
            self._image = self._open_image()
        return self._image

    def subscribe(self, applied: Applied | None) -> None:
        """Have `publish` call `applied` with each change of the metadata."""
        self._applied = applied

    def begin_anew(self) -> None:
        """Read the snapshot with which the log begins now."""
        try:
            if self._image is None:
                self._image = self._open_image()
            else:
                self._image.reload()
            self._records = None
        except (CorruptRecordError, KafkaError) as error:
            self._give_up(error)

    def _open_image(self) -> CommittedMetadata:
        image = CommittedMetadata(self._log.log, self._clock, self._rules)
        image.snapshots.beside = self._beside
        return image

    @property
    def metadata(self) -> ClusterMetadata | None:
        """The committed metadata, as far as this node knows it; None if it cannot be read."""
        return None if self._image is None else self._image.machine

    @property
    def unfinished(self) -> bool:
        """True if committed records wait to be applied, so that the loop can do something else."""
        return self._image is not None and self._image.unfinished

    def committed(self, high_watermark: int) -> None:
        """Apply what is below the high watermark."""
        if self._image is not None:
            self._image.committed = max(self._image.committed, min(high_watermark, self._log.log.end_offset))
            self.go_on()

    def go_on(self) -> None:
        """Apply more of it, for a limited time, and write a snapshot if it is due."""
        if self._image is None:
            return
        try:
            records = self._image.go_on()
        except (CorruptRecordError, KafkaError) as error:
            self._give_up(error)
        else:
            if self._records is not None and self._is_shared:
                self._records += records

    def publish(self) -> None:
        """Report what was applied since the last time. Called when the state machine of the quorum is at rest."""
        if self._applied is None or self._image is None or self._image.applied == self._published:
            return
        records, self._records = self._records, []
        self._published = self._image.applied
        self._applied(records)

    def _give_up(self, error: Exception) -> None:
        """Go on without snapshots. A broker role that reads the metadata here cannot go on."""
        if self._is_shared:
            raise error
        self._image = None
        logger.error(
            "%s; no snapshots are made until the next start, and the log in %s grows", error, self._log.directory
        )

    def _beside(self, work: Work, done: Done) -> None:
        def written(error: BaseException | None) -> None:
            done(error)
            self._log.look_at_snapshots()
            self._told()

        self._submit(work, written)
