"""The copies that move from one directory of this broker to another (AlterReplicaLogDirs), a little at a time between requests.

    move ──► a folder that says so ──► copied, in stints ──► the metadata are told ──► switched ──► the old files go
                                                            └ cancelled, failed: the future copy goes, nothing else has changed

A start takes up what a folder of a future copy says, from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from ottla.broker.disk import Disk
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions, note_removal
from ottla.broker.partitions.relocation import LeftError, Relocation
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.replication.relocation import Step
from ottla.coordination.replication.throttle import ReplicationThrottle
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT64_MAX, TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log

log = logging.getLogger(__name__)
STINT_SECONDS = 0.005
PAUSE_SECONDS = 0.002
"""Between two stints, for those who have asked meanwhile."""
POLL_SECONDS = 0.02
"""How often to look whether what is waited for has come."""
AGAIN_SECONDS = 5.0


class Relocations:
    """One move for a partition at most. Belongs to the loop; a disk thread forces, and removes what is left over."""

    def __init__(
        self,
        directory: DataDirectory | DataDirectories,
        partitions: Partitions,
        limit: Callable[[], int],
        disk: Disk,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`limit` is in bytes a second."""
        self.tell: Callable[[TopicPartition], None] = lambda partition: None
        """Has the metadata told where a copy is, or will be as `told_home` says."""
        self.is_at_rest: Callable[[Partition], bool] = lambda partition: True
        """Whether nobody reads a partition's whole log beside the loop."""
        self.moved: Callable[[Partition], None] = lambda partition: None
        """Told of a partition whose log is another now."""
        self.suspect: Callable[[BaseException | None, Partition | None], None] = lambda error, partition: None
        """Told of errors that may mean that a directory has failed."""
        self._directory = directory
        self._partitions = partitions
        self._limit = limit
        self._disk = disk
        self._timers = timers
        self._clock = clock
        self._throttle = ReplicationThrottle()
        self._moves: dict[TopicPartition, Relocation] = {}
        self._is_to_go_on = False

    # what is asked

    def begin(self) -> None:
        """Take up what the last run left."""
        for directory in self._directory.online():
            for name in directory.futures.partitions:
                self._take_up(name, directory)
        self._go_on_soon(0)

    def move(self, partition: Partition, home: DataDirectory) -> None:
        """Begin to move a copy there, instead of elsewhere; where it is there already it stays. KafkaError where it cannot."""
        name = partition.topic_partition
        under_way = self._moves.get(name)
        if under_way is not None and under_way.home is home:
            return
        partition.log  # noqa: B018  # which says what is wrong with it
        present = self._directory.place(name)
        if under_way is not None:
            self._leave(under_way)
        if present is not home:
            home.futures.make(name)
            self._moves[name] = Relocation(partition, home)
            log.info("%s begins to move from %s to %s", name, present.path, home.path)
            self._go_on_soon(0)

    def of(self, partition: TopicPartition) -> Relocation | None:
        """The move of a partition that is under way."""
        return self._moves.get(partition)

    def told_home(self, partition: TopicPartition) -> UUID | None:
        """The directory that the metadata are to say of one that is about to be there; None of all others."""
        move = self._moves.get(partition)
        return move.home.directory_id if move is not None and move.told else None

    # what is done

    def _take_up(self, name: TopicPartition, directory: DataDirectory) -> None:
        partition = self._partitions.find(*name)
        try:
            if partition is None or self._directory.place(name) is directory:
                self._disk.submit(directory.futures.drop(name), note_removal)
                return
            self.tell(name)
        except KafkaError as error:
            log.warning("the move of %s to %s is not taken up: %s", name, directory.path, error)
            return
        self._moves[name] = Relocation(partition, directory)
        log.info("%s goes on to move to %s, from the beginning", name, directory.path)

    def _go_on_soon(self, seconds: float) -> None:
        if self._moves and not self._is_to_go_on:
            self._is_to_go_on = True
            self._timers.at(self._clock.monotonic() + seconds, self._go_on)

    def _go_on(self) -> None:
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
        if first is not None:  # the next turn begins with another
            self._moves[first] = self._moves.pop(first)
        self._go_on_soon(PAUSE_SECONDS if busy else POLL_SECONDS)

    def _advance(self, move: Relocation) -> bool:
        """Do the next step; whether there is another at once."""
        if move.forcing or move.not_before > self._clock.monotonic():
            return False
        if self._is_gone(move):
            return False
        try:
            return self._step(move)
        except LeftError as left:
            log.error("%s stays where it is: %s", move.partition.topic_partition, left)
            self.suspect(left.__cause__, move.partition)
            self._leave(move)
        except (KafkaError, CorruptRecordError) as error:
            self._wait(move, error)
        except Exception as error:  # of one move: the others go on
            log.exception("%s does not move on", move.partition)
            self._wait(move, error)
        return False

    def _is_gone(self, move: Relocation) -> bool:
        """End a move that has lost its sense: the partition is gone, or one of the two directories."""
        partition = move.partition
        name = partition.topic_partition
        if self._partitions.find(*name) is not partition:
            self._leave(move, tell=False)
        elif move.home not in self._directory.online():
            self._leave(move)
        elif partition.fault is not None:  # what is in the folder may be all that is left
            del self._moves[name]
            move.home.futures.leave(name)
        else:
            return False
        return True

    def _step(self, move: Relocation) -> bool:
        now_ms = self._clock.wall_ms()
        move.ready(now_ms)
        step = move.next_step(assigned=self._is_assigned(move), at_rest=self.is_at_rest(move.partition))
        match step:
            case Step.CUT:
                move.cut(now_ms)
            case Step.BEGIN:
                move.begin_anew(now_ms)
            case Step.COPY:
                return self._copy(move, now_ms)
            case Step.FORCE:
                self._force(move)
            case Step.TELL:
                move.told = True
                self.tell(move.partition.topic_partition)
            case Step.SWITCH:
                self._switch(move, now_ms)
        return step in (Step.CUT, Step.BEGIN, Step.TELL)

    def _is_assigned(self, move: Relocation) -> bool:
        assert isinstance(self._directory, DataDirectories)
        return self._directory.assigned(move.partition.topic_partition) == move.home.directory_id

    def _copy(self, move: Relocation, now_ms: int) -> bool:
        limit = self._limit()
        if limit < INT64_MAX and self._throttle.wait(limit, self._clock.monotonic()) > 0:
            return False
        size = move.copy(now_ms)
        if limit < INT64_MAX:
            self._throttle.record(size, self._clock.monotonic())
        return True

    def _force(self, move: Relocation) -> None:
        work, forced = move.force()

        def done(error: BaseException | None) -> None:
            move.forcing = False
            if error is None:
                forced()
            elif self._moves.get(move.partition.topic_partition) is move:
                self._wait(move, error)
            self._go_on_soon(0)

        self._disk.submit(work, done)

    def _switch(self, move: Relocation, now_ms: int) -> None:
        partition = move.partition
        name = partition.topic_partition
        present = self._directory.place(name)
        self._put(partition, move.switch(now_ms), move.home)
        del self._moves[name]
        present.begin_deletion([name], partition.topic_id)
        present.deletions.vacate([name])
        self._disk.submit(present.deletions.remove, note_removal)
        log.info("%s has moved from %s to %s", name, present.path, move.home.path)

    def _put(self, partition: Partition, moved: Log, home: DataDirectory) -> None:
        assert isinstance(self._directory, DataDirectories)
        self._directory.settle(partition.topic_partition, home)
        partition.relocate(moved)
        self.moved(partition)

    def _wait(self, move: Relocation, error: BaseException) -> None:
        """Try again in a while; the reason is told once."""
        if str(error) != move.fault:
            log.error("%s does not move on to %s, it is tried again: %s", move.partition, move.home.path, error)
        move.fault, move.not_before = str(error), self._clock.monotonic() + AGAIN_SECONDS
        self.suspect(error, None)

    def _leave(self, move: Relocation, *, tell: bool = True) -> None:
        """End a move; the copy stays where it is."""
        name = move.partition.topic_partition
        self._moves.pop(name, None)
        try:
            self._disk.submit(move.home.futures.drop(name), note_removal)
            move.home.forget([name])
            if move.told and tell:
                self.tell(name)
        except KafkaError as error:
            log.error("%s", error)
