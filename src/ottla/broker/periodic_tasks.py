"""The periodic tasks of a broker: retention, compaction, checkpoints, expiration.

Each task runs again after the current value of its setting. Tasks over all partitions run in steps (`PartitionSweep`), files are
written in the disk threads; all else runs in the loop, and is short. A failed task is logged and runs again at its next
turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import repeat
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partition_sweep import PartitionSweep
from ottla.broker.replica_manager.partitions import ensure_open
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)


class PeriodicTasks:
    """The periodic tasks of one broker, in its event loop."""

    def __init__(self, node: BrokerNode, disk: Disk) -> None:
        self._node = node
        self._disk = disk
        self._checkpointed: dict[TopicPartition, tuple[int, int]] = {}

    def start(self) -> None:
        """Start the timer of each task."""
        node = self._node
        retention = PartitionSweep(node.timers, node.clock, self._delete_expired)
        self._repeat("log_retention_check_interval_ms", lambda: retention.start(node.partitions))
        if node.config.log_cleaner_enable:
            self._repeat(
                "log_cleaner_backoff_ms", lambda: node.cleaning.choose_partitions(node.partitions.list_compacted())
            )
        self._repeat("log_flush_offset_checkpoint_interval_ms", self._checkpoint)
        self._repeat("replica_high_watermark_checkpoint_interval_ms", self._checkpoint_high_watermarks)
        expiry = PartitionSweep(node.timers, node.clock, self._expire_producers)
        self._repeat("producer_id_expiration_check_interval_ms", lambda: expiry.start(node.partitions))
        self._repeat("offsets_retention_check_interval_ms", self._expire_offsets)
        # The first run is at once: transactions that were open at a crash block readers of committed records.
        interval = "transaction_abort_timed_out_transaction_cleanup_interval_ms"
        self._repeat(interval, self._sweep_transactions, first_ms=0)

    def open_unchecked_logs(self) -> None:
        """Start to open the logs that a crash has left and that a start does not have to wait for."""
        PartitionSweep(self._node.timers, self._node.clock, self._ensure_open).start(
            self._node.partitions.list_unrecovered
        )

    def _repeat(self, setting: str, chore: Callable[[], None], *, first_ms: int | None = None) -> None:
        """Run a task at an interval. The setting is read again after each run."""
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

    def _delete_expired(self, partition: Partition) -> None:
        """Apply retention to a partition, if it has a log at all, opened or not."""
        node, name = self._node, partition.topic_partition
        if node.partitions.find(*name) is not partition or not node.directory.folder(name).is_dir():
            return
        try:
            for segment in partition.log.retain(node.clock.wall_ms()):
                node.waiting.handle_change(partition)
                log.info("%s: deleted the segment at offset %d by retention", partition, segment.base_offset)
        except OutOfServiceError:
            pass  # logged before
        except KafkaError as error:
            node.partitions.complaints.log(str(error))

    def _expire_producers(self, partition: Partition) -> None:
        """Remove expired producers of a partition. A partition that was not used since the start is skipped."""
        opened = partition.opened_log
        if opened is not None:
            gone = opened.producers.expire(self._node.clock.wall_ms(), self._node.config.producer_id_expiration_ms)
            if gone:
                log.debug("%s: removed %d expired producers", partition, len(gone))

    def _expire_offsets(self) -> None:
        if self._node.topics.find_by_name(CONSUMER_OFFSETS) is not None:
            self._node.groups.expire_offsets()

    def _sweep_transactions(self) -> None:
        if self._node.topics.find_by_name(TRANSACTION_STATE) is not None:
            self._node.transactions.abort_timed_out()

    def _checkpoint(self) -> None:
        """Write the recovery points of logs to the checkpoint file, if they have changed."""
        directory = self._node.directory
        progress = {name: (opened.recovery_point, opened.start_offset) for name, opened in directory.open_logs.items()}
        if progress != self._checkpointed:
            self._disk.submit(directory.prepare_checkpoint(), self._handle_checkpoint)
            self._checkpointed = progress

    def _handle_checkpoint(self, error: BaseException | None) -> None:
        """Handle the result of a checkpoint. A failed one is written again the next time, in any case."""
        if error is not None:
            log.error("%s", error)
            self._checkpointed = {}
            self._node.disk_watch.report_error(error, None)

    def _checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of partitions to the checkpoint file, if they have changed."""
        writing = self._node.directory.prepare_high_watermarks()
        if writing is not None:
            self._disk.submit(writing, log_failure)


def log_failure(error: BaseException | None) -> None:
    """Log a failure. It is retried the next time."""
    if error is not None:
        log.error("%s", error)
