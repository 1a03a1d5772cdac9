"""Replicas that move between directories of this broker (AlterReplicaLogDirs), in steps between requests.

    move ──► a folder for the future log ──► copied, in steps ──► reported to the controllers ──► switched ──► old files deleted
                                                            └ cancelled, failed: the future log is deleted, nothing else changes

After a restart a move starts again from the beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.log_dir_move import MoveAbandonedError, Relocation
from ottla.broker.replica_manager.log_flusher import Suspect
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions, log_removal
from ottla.clock import Clock
from ottla.coordination.replication.relocation import RelocationStep
from ottla.coordination.replication.throttle import ReplicationThrottle
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT64_MAX, TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log

log = logging.getLogger(__name__)
STINT_SECONDS = 0.005
PAUSE_SECONDS = 0.002
"""The pause between two steps, for requests."""
POLL_SECONDS = 0.02
"""The interval between two checks for what is waited for."""
AGAIN_SECONDS = 5.0


class LogUsers(Protocol):
    """The parts of the broker that use a partition's log while it moves."""

    def is_at_rest(self, partition: Partition) -> bool:
        """Return True if no thread reads the partition's whole log."""

    def report_directory(self, partition: TopicPartition) -> None:
        """Report the directory of a replica, or its future one, to the controllers."""

    def use_moved_log(self, partition: Partition) -> None:
        """Continue with a partition that has another log now."""


class LogDirMoves:
    """Moves replicas, at most one move per partition.

    Belongs to the loop; a disk thread flushes, and deletes files.
    """

    def __init__(
        self,
        directory: DataDirectory | DataDirectories,
        partitions: Partitions,
        limit: Callable[[], int],
        users: LogUsers,
        suspect: Suspect,
        disk: Disk,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`limit` is in bytes a second; `suspect` is called with errors that may mean a failed directory."""
        self._users = users
        self._suspect = suspect
        self._directory = directory
        self._partitions = partitions
        self._limit = limit
        self._disk = disk
        self._timers = timers
        self._clock = clock
        self._throttle = ReplicationThrottle()
        self._moves: dict[TopicPartition, Relocation] = {}
        self._is_to_go_on = False

    # requests

    def start(self) -> None:
        """Start again the moves of the last run, and delete the future logs that are not needed."""
        for directory in self._directory.online():
            for name in directory.futures.partitions:
                self._resume_move(name, directory)
        self._schedule(0)

    def start_move(self, partition: Partition, home: DataDirectory) -> None:
        """Start to move a replica to `home`, instead of another move.

        Nothing is done if it is there. KafkaError if it cannot be moved.
        """
        name = partition.topic_partition
        under_way = self._moves.get(name)
        if under_way is not None and under_way.home is home:
            return
        partition.log  # noqa: B018  # which says what is wrong with it
        present = self._directory.place(name)
        if under_way is not None:
            self._abandon(under_way)
        if present is not home:
            home.futures.create_folder(name)
            self._moves[name] = Relocation(partition, home)
            log.info("moving %s from %s to %s", name, present.path, home.path)
            self._schedule(0)

    def find_move(self, partition: TopicPartition) -> Relocation | None:
        """Return the move of a partition that is under way, or None."""
        return self._moves.get(partition)

    def find_reported_directory(self, partition: TopicPartition) -> UUID | None:
        """Return the target directory of a replica that is about to be switched, else None.

        It is the directory to report to the controllers.
        """
        move = self._moves.get(partition)
        return move.home.directory_id if move is not None and move.is_reported else None

    # steps

    def _resume_move(self, name: TopicPartition, directory: DataDirectory) -> None:
        partition = self._partitions.find(*name)
        try:
            if partition is None or self._directory.place(name) is directory:
                self._disk.submit(directory.futures.remove_folder(name), log_removal)
                return
            self._users.report_directory(name)
        except KafkaError as error:
            log.warning("the move of %s to %s is not resumed: %s", name, directory.path, error)
            return
        self._moves[name] = Relocation(partition, directory)
        log.info("moving %s to %s starts again from the beginning after a restart", name, directory.path)

    def _schedule(self, seconds: float) -> None:
        if self._moves and not self._is_to_go_on:
            self._is_to_go_on = True
            self._timers.schedule(self._clock.monotonic() + seconds, self._run)

    def _run(self) -> None:
        self._is_to_go_on = False
        end = self._clock.monotonic() + STINT_SECONDS
        busy = False
        for move in list(self._moves.values()):
            try:
                while self._clock.monotonic() < end and self._advance(move):
                    busy = True
            except Exception:  # at the end of one move: the others continue, and this one is tried again
                log.exception("a move between directories failed, and is tried again partition=%s", move.partition)
                move.not_before = self._clock.monotonic() + AGAIN_SECONDS
        first = next(iter(self._moves), None)
        if first is not None:  # the next turn starts with another one
            self._moves[first] = self._moves.pop(first)
        self._schedule(PAUSE_SECONDS if busy else POLL_SECONDS)

    def _advance(self, move: Relocation) -> bool:
        """Run the next step of a move. Return True if another one follows at once."""
        if move.forcing or move.not_before > self._clock.monotonic():
            return False
        if self._is_deleted(move):
            return False
        try:
            return self._step(move)
        except MoveAbandonedError as left:
            log.error("%s is not moved: %s", move.partition.topic_partition, left)
            self._suspect(left.__cause__, move.partition)
            self._abandon(move)
        except (KafkaError, CorruptRecordError) as error:
            self._wait(move, error)
        except Exception as error:  # of one move: the others continue
            log.exception("moving %s failed", move.partition)
            self._wait(move, error)
        return False

    def _is_deleted(self, move: Relocation) -> bool:
        """End a move if the partition was deleted, or one of the two directories failed."""
        partition = move.partition
        name = partition.topic_partition
        if self._partitions.find(*name) is not partition:
            self._abandon(move, reports=False)
        elif move.home not in self._directory.online():
            self._abandon(move)
        elif partition.fault is not None:  # what is in the folder may be all that is left
            del self._moves[name]
            move.home.futures.close_log(name)
        else:
            return False
        return True

    def _step(self, move: Relocation) -> bool:
        now_ms = self._clock.wall_ms()
        move.prepare(now_ms)
        step = move.next_step(assigned=self._is_assigned(move), at_rest=self._users.is_at_rest(move.partition))
        match step:
            case RelocationStep.CUT:
                move.truncate(now_ms)
            case RelocationStep.BEGIN:
                move.restart(now_ms)
            case RelocationStep.COPY:
                return self._copy(move, now_ms)
            case RelocationStep.FORCE:
                self._flush(move)
            case RelocationStep.REPORT:
                move.is_reported = True
                self._users.report_directory(move.partition.topic_partition)
            case RelocationStep.SWITCH:
                self._switch(move, now_ms)
        return step in (RelocationStep.CUT, RelocationStep.BEGIN, RelocationStep.REPORT)

    def _is_assigned(self, move: Relocation) -> bool:
        assert isinstance(self._directory, DataDirectories)
        return self._directory.assigned(move.partition.topic_partition) == move.home.directory_id

    def _copy(self, move: Relocation, now_ms: int) -> bool:
        limit = self._limit()
        if limit < INT64_MAX and self._throttle.wait_seconds(limit, self._clock.monotonic()) > 0:
            return False
        size = move.copy(now_ms)
        if limit < INT64_MAX:
            self._throttle.record(size, self._clock.monotonic())
        return True

    def _flush(self, move: Relocation) -> None:
        work, forced = move.flush()

        def done(error: BaseException | None) -> None:
            move.forcing = False
            if error is None:
                forced()
            elif self._moves.get(move.partition.topic_partition) is move:
                self._wait(move, error)
            self._schedule(0)

        self._disk.submit(work, done)

    def _switch(self, move: Relocation, now_ms: int) -> None:
        partition = move.partition
        name = partition.topic_partition
        present = self._directory.place(name)
        self._replace_log(partition, move.switch_logs(now_ms), move.home)
        del self._moves[name]
        present.begin_deletion([name], partition.topic_id)
        present.deletions.free_names([name])
        self._disk.submit(present.deletions.remove, log_removal)
        log.info("moved %s from %s to %s", name, present.path, move.home.path)

    def _replace_log(self, partition: Partition, moved: Log, home: DataDirectory) -> None:
        assert isinstance(self._directory, DataDirectories)
        self._directory.record_move(partition.topic_partition, home)
        partition.relocate(moved)
        self._users.use_moved_log(partition)

    def _wait(self, move: Relocation, error: BaseException) -> None:
        """Retry later. Each reason is logged once."""
        if str(error) != move.fault:
            log.error("moving %s to %s failed, and is retried: %s", move.partition, move.home.path, error)
        move.fault, move.not_before = str(error), self._clock.monotonic() + AGAIN_SECONDS
        self._suspect(error, None)

    def _abandon(self, move: Relocation, *, reports: bool = True) -> None:
        """End a move. The replica stays in its directory."""
        name = move.partition.topic_partition
        self._moves.pop(name, None)
        try:
            self._disk.submit(move.home.futures.remove_folder(name), log_removal)
            move.home.forget_partitions([name])
            if move.is_reported and reports:
                self._users.report_directory(name)
        except KafkaError as error:
            log.error("%s", error)
