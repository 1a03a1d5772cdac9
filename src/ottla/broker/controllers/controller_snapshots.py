"""Snapshots of the metadata, which each voter makes for itself as Kafka's controllers do (KIP-630), so that the log does not grow for ever.

    committed ──► replayed ──► so many bytes, or so long ago ──► written beside the loop ──► what is too old of the log goes

For this a voter has the metadata as they are committed; what an active controller has goes ahead of that, and may be taken back. A snapshot is what
another is given that comes with less than the log has.
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

logger = logging.getLogger(__name__)
Done = Callable[[BaseException | None], None]


class CommittedMetadata(ObservedMetadata):
    """Reads the log, and leaves it to the quorum's machine to change it."""

    def _go_on_at(self, offset: int) -> None:
        raise CorruptRecordError(f"no snapshot in {self.log.directory} stands for what was before its log")


class ControllerSnapshots:
    """Belongs to the loop, but for what `beside` does elsewhere."""

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
        self.begin_anew()

    def begin_anew(self) -> None:
        """The log begins elsewhere: read what stands for all before it."""
        try:
            self._image = CommittedMetadata(self._log.log, self._clock, self._rules)
            self._image.snapshots.beside = self._beside
        except (CorruptRecordError, KafkaError) as error:
            self._give_up(error)

    @property
    def metadata(self) -> ClusterMetadata | None:
        """As it is committed, as far as that is known here; None where it cannot be read."""
        return None if self._image is None else self._image.machine

    @property
    def unfinished(self) -> bool:
        """Whether some of what is committed waits so that the loop can do something else."""
        return self._image is not None and self._image.unfinished

    def committed(self, high_watermark: int) -> None:
        """Most voters have all below."""
        if self._image is not None:
            self._image.committed = max(self._image.committed, min(high_watermark, self._log.log.end_offset))
            self.go_on()

    def go_on(self) -> None:
        """Let more of it become state, for a moment, and write a snapshot if it is time."""
        if self._image is None:
            return
        try:
            self._image.go_on()
        except (CorruptRecordError, KafkaError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Without them the quorum goes on all the same."""
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
