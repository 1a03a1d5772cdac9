"""The committed metadata of a voter, and snapshots of it, which each voter makes for itself (KIP-630).

    committed ──► replayed ──► image ──► the broker role of this node, at the end of the turn
                                 └──► after so many bytes or so long a snapshot, written by a disk thread; then the old part of the log is deleted

The active controller's own state is ahead of the committed one and may be dropped, so it is not used here. A snapshot is
sent to a node if its log ends before this one starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.metadata.observed_snapshots import SnapshotRules, Submit, Work
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.storage.state_log.snapshot import SnapshotId

logger = logging.getLogger(__name__)
Done = Callable[[BaseException | None], None]
Applied = Callable[[list[Message] | None], None]
"""Takes the records that were applied to the metadata; None if a snapshot has replaced all of it."""


class CommittedMetadata(ObservedMetadata):
    """Reads the log; only the state machine of the quorum changes it."""

    def reload(self) -> None:
        """Read the newest snapshot again. CorruptRecordError, KafkaError if there is none for the start of the log."""
        self.machine = self._build()

    def _continue_at(self, offset: int) -> None:
        raise CorruptRecordError(f"the log in {self.log.directory} does not continue its snapshot at offset {offset}")

    def _describe_fallback(self, older: Sequence[SnapshotId]) -> str:
        if older:
            return "the previous snapshot and more of the log are read"
        return "there is no earlier one" if self.log.start_offset else "the log is read from its start"

    def _start_without_snapshot(self, broken: Sequence[SnapshotId]) -> None:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"the state in {self.log.directory} cannot be read: its log starts at offset {self.log.start_offset}, and no complete "
            f"snapshot has the earlier records ({', '.join(each.file_name for each in broken) or 'there is none'}): restore a backup",
        )


class ControllerSnapshots:
    """Belongs to the event loop, except for the work that disk threads do."""

    def __init__(
        self, log: QuorumLog, rules: SnapshotRules, clock: Clock, submit: Submit, on_written: Callable[[], None]
    ) -> None:
        """`on_written` is called after a snapshot was written, which may also have deleted the start of the log."""
        self._log = log
        self._rules = rules
        self._clock = clock
        self._submit = submit
        self._on_written = on_written
        self._image: CommittedMetadata | None = None
        self._applied: Applied | None = None
        self._is_shared = False
        """True if the broker role of this node reads the metadata here."""
        self.reload()
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

    def reload(self) -> None:
        """Read the snapshot at the start of the log, after the quorum has replaced the log by it."""
        try:
            if self._image is None:
                self._image = self._open_image()
            else:
                self._image.reload()
            self._records = None
        except (CorruptRecordError, KafkaError) as error:
            self._abandon(error)

    def _open_image(self) -> CommittedMetadata:
        return CommittedMetadata(self._log.log, self._clock, self._rules, self._submit_snapshot)

    @property
    def metadata(self) -> ClusterMetadata | None:
        """The committed metadata, as far as this node knows it; None if it cannot be read."""
        return None if self._image is None else self._image.machine

    @property
    def has_unapplied(self) -> bool:
        """True if committed records wait to be applied, so that the loop can do something else."""
        return self._image is not None and self._image.unfinished

    def handle_commit(self, high_watermark: int) -> None:
        """Apply what is below the high watermark."""
        if self._image is not None:
            self._image.committed = max(self._image.committed, min(high_watermark, self._log.log.end_offset))
            self.continue_work()

    def continue_work(self) -> None:
        """Apply more committed records, for a limited time, and write a snapshot if it is due."""
        if self._image is None:
            return
        try:
            records = self._image.apply_more()
        except (CorruptRecordError, KafkaError) as error:
            self._abandon(error)
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

    def _abandon(self, error: Exception) -> None:
        """Continue without snapshots. If the broker role reads the metadata here, raise the error instead."""
        if self._is_shared:
            raise error
        self._image = None
        logger.error(
            "%s; no snapshots are made until the next start, and the log in %s grows", error, self._log.directory
        )

    def _submit_snapshot(self, work: Work, done: Done) -> None:
        def written(error: BaseException | None) -> None:
            done(error)
            self._log.load_snapshots()
            self._on_written()

        self._submit(work, written)
