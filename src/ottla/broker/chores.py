"""What a broker does from time to time, whether or not anybody asks: retention, cleaning, checkpoints, expiry.

Each chore comes again when the span of its setting is over, as that is set by then. What walks over partitions does so in stints (`Sweep`),
what writes files leaves that to the disk's threads; everything else happens in the loop, and is short. A chore that fails is told
and comes again with its next turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.disk import Disk
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import ensure_open
from ottla.broker.partitions.sweep import Sweep
from ottla.broker.timers import repeat
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)


class Chores:
    """The chores of one broker, in its loop."""

    def __init__(self, node: BrokerNode, disk: Disk) -> None:
        self._node = node
        self._disk = disk
        self._checkpointed: dict[TopicPartition, tuple[int, int]] = {}

    def begin(self) -> None:
        """The first turn of each is due after its span; what a start after a crash left for later begins at once."""
        node = self._node
        Sweep(node.timers, node.clock, self._ensure_open).begin(node.partitions.unchecked)
        if not node.config.joins:  # Of a cluster's, its controllers see to some of this.
            node.relocations.begin()
        retention = Sweep(node.timers, node.clock, self._retain)
        self._every("log_retention_check_interval_ms", lambda: retention.begin(node.partitions))
        if node.config.log_cleaner_enable:
            self._every("log_cleaner_backoff_ms", lambda: node.cleaning.look(node.partitions.compacted()))
        self._every("log_flush_offset_checkpoint_interval_ms", self._checkpoint)
        self._every("replica_high_watermark_checkpoint_interval_ms", self._checkpoint_high_watermarks)
        expiry = Sweep(node.timers, node.clock, self._expire_producers)
        self._every("producer_id_expiration_check_interval_ms", lambda: expiry.begin(node.partitions))
        self._every("offsets_retention_check_interval_ms", self._expire_offsets)
        # At once for the first time: what a crash left prepared or open keeps readers of committed records waiting.
        interval = "transaction_abort_timed_out_transaction_cleanup_interval_ms"
        self._every(interval, self._sweep_transactions, first_ms=0)
        if node.config.delegation_token_secret_key is not None and not node.config.joins:
            self._every("delegation_token_expiry_check_interval_ms", node.tokens.sweep)

    def _every(self, setting: str, chore: Callable[[], None], *, first_ms: int | None = None) -> None:
        """Do something each time that the span of a setting is over, as it is set by then."""
        node = self._node

        def seconds() -> float:
            delay_ms: int = getattr(node.config, setting)
            return delay_ms / 1000

        first_seconds = None if first_ms is None else first_ms / 1000
        repeat(node.timers, node.clock, setting.replace("_", "."), chore, seconds, first_seconds=first_seconds)

    def _ensure_open(self, partition: Partition) -> None:
        """Open the log of a partition that a crash left, unless its topic was deleted since."""
        if self._node.partitions.find(*partition.topic_partition) is partition:
            ensure_open(partition)

    def _retain(self, partition: Partition) -> None:
        """Delete what a partition need not keep, if it has a log at all, opened or not."""
        node, name = self._node, partition.topic_partition
        if node.partitions.find(*name) is not partition or not node.directory.folder(name).is_dir():
            return
        try:
            for segment in partition.log.retain(node.clock.wall_ms()):
                node.waiting.changed(partition)
                log.info("%s: deleted the segment at offset %d by retention", partition, segment.base_offset)
        except OutOfServiceError:
            pass  # as was said
        except KafkaError as error:
            node.partitions.complaints.tell(str(error))

    def _expire_producers(self, partition: Partition) -> None:
        """Forget the producers that have not written to a partition for long; one that nobody uses is left alone."""
        opened = partition.opened_log
        if opened is not None:
            gone = opened.producers.expire(self._node.clock.wall_ms(), self._node.config.producer_id_expiration_ms)
            if gone:
                log.debug("%s: forgot %d producers that were silent", partition, len(gone))

    def _expire_offsets(self) -> None:
        if self._node.topics.named(CONSUMER_OFFSETS) is not None:
            self._node.groups.expire()

    def _sweep_transactions(self) -> None:
        if self._node.topics.named(TRANSACTION_STATE) is not None:
            self._node.transactions.sweep()

    def _checkpoint(self) -> None:
        """Write down how far logs are flushed, if that has changed."""
        directory = self._node.directory
        progress = {name: (opened.recovery_point, opened.start_offset) for name, opened in directory.open_logs.items()}
        if progress != self._checkpointed:
            self._disk.submit(directory.checkpointing(), self._note_checkpoint)
            self._checkpointed = progress

    def _note_checkpoint(self, error: BaseException | None) -> None:
        """Where it failed it is tried again the next time, whatever happens until then."""
        if error is not None:
            log.error("%s", error)
            self._checkpointed = {}
            self._node.disk_watch.suspect(error, None)

    def _checkpoint_high_watermarks(self) -> None:
        """Write down up to where partitions are committed, if that has changed."""
        writing = self._node.directory.checkpointing_high_watermarks()
        if writing is not None:
            self._disk.submit(writing, tell_failure)


def tell_failure(error: BaseException | None) -> None:
    """What failed is tried again the next time."""
    if error is not None:
        log.error("%s", error)
