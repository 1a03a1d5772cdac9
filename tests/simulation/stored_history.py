"""The partition's histories over storage's own log, and a producer that sends what was not acknowledged again."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from ottla.errors import KafkaError
from tests.simulation.replica_broker import ReplicaBroker
from tests.simulation.replica_history import ReplicaHistory
from tests.simulation.stored_log import StoredLog, folder_of
from tests.storage.faulty_disk import FaultyDisk

SHM = Path("/dev/shm")
FULL = {"pwrite", "open"}
"""The calls that fail on a full disk."""


class StoredHistory(ReplicaHistory):
    """A history of one seed. Each value is sent to leaders until it is acknowledged; `written` is the first that is not."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._acknowledged: set[int] = set()

    def run(self) -> None:
        with ExitStack() as stack:
            root = stack.enter_context(TemporaryDirectory(dir=SHM if SHM.is_dir() else None))
            for broker in self.brokers.values():
                folder = folder_of(Path(root), broker.id)
                disk = stack.enter_context(FaultyDisk(folder.parent, self.world.chance))
                broker.log = StoredLog(folder, disk, self.world)
                stack.callback(lambda log: log.log.release(), broker.log)
            super().run()

    def maybe_replace_disk(self, broker: ReplicaBroker) -> None:
        """Do nothing: these histories check the content of the disks."""

    def client(self) -> None:
        """Write to every broker that considers itself the leader, and read from it. Up to five values are in flight, as Kafka allows."""
        while self.written in self._acknowledged:
            self.written += 1
        for broker in self.brokers.values():
            if broker.up and broker.leader is not None:
                if self.world.likely(0.7):
                    self._send(broker, self.world.chance.choice((1, 2, 5)))
                self._read(broker)

    def acknowledged(self, offset: int, value: int) -> None:
        super().acknowledged(offset, value)
        self._acknowledged.add(value)

    def _send(self, broker: ReplicaBroker, count: int) -> None:
        """So many, from the first that is not acknowledged on; the disk may be full at this moment."""
        assert isinstance(broker.log, StoredLog)
        broker.log.disk.failing = set(FULL) if self.world.likely(0.02) else set()
        try:
            for value in range(self.written, self.written + count):
                broker.produce(value)
        except KafkaError as error:
            self.world.say(f"broker {broker.id}", "refuses", error)
            if not broker.log.disk.failing and self._is_rightful(broker):
                raise
        finally:
            broker.log.disk.failing = set()

    def _is_rightful(self, broker: ReplicaBroker) -> bool:
        """True if it is also the controller's leader, and so has every acknowledged record."""
        return self.controller.assignment.leader == broker.id and self._is_known(broker.id)

    def _check_end(self) -> None:
        super()._check_end()
        for broker in self.brokers.values():
            values = [value for _, value in broker.log.batches]
            assert len(values) == len(set(values)), f"broker {broker.id} has a value twice: {values}"
