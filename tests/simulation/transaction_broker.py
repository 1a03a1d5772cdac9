"""A broker of transactions: the real machine and the real state of producers, over lists, and every crash between.

Acts as `broker/coordinators/transaction_coordinator.py` and `broker/apis/transactional_write.py` do, except that it may crash after
each write and restart with the written state.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.broker.apis import transactional_write
from ottla.broker.replica_manager.refused_sequences import RejectedSequences, is_sent_again
from ottla.coordination.transactions.events import (
    Answer,
    EndRequested,
    MarkersWritten,
    PartitionsAdded,
    ProducerRequested,
    TimePassed,
)
from ottla.coordination.transactions.records import TransactionRecord, decode_record, encode_record
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import V2, Transaction
from ottla.coordination.transactions.transactions import Transactions
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.records.batch import CONTROL, TRANSACTIONAL, BatchHeader
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.producers.producer_state import ProducerStateManager
from tests.simulation.world import World

TIMEOUT_MS = 20_000
EXPIRATION_MS = 200_000
RETRY_SECONDS = 0.2
HESITATIONS = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.NETWORK_EXCEPTION
"""The last for a coordinator that does not answer."""
TOPIC_ID = uuid.UUID(int=1)


class Crashed(Exception):
    """The broker died while it worked."""


class Stored(NamedTuple):
    """A batch in a partition: data of a producer, or the end of a transaction."""

    header: BatchHeader
    marker: EndMarker | None
    whose: Any


class SimulatedPartition:
    """A log that is a list, and what the real state makes of it."""

    def __init__(self) -> None:
        self.log: list[Stored] = []
        self.state = ProducerStateManager()

    def append(self, header: BatchHeader, marker: EndMarker | None, whose: Any, version: int = 0) -> None:
        """Check, append, account for; KafkaError where it is refused. A batch that is there already is not appended."""
        header = header._replace(base_offset=len(self.log))
        origin = Origin.COORDINATOR if marker else Origin.CLIENT
        if self.state.check([header], origin, [marker], version) is None:
            self.log.append(Stored(header, marker, whose))
            self.state.add(header, marker, 0)
            self.state.check_invariants()

    def reload(self) -> None:
        """Apply the log, and nothing else."""
        self.state = ProducerStateManager()
        for stored in self.log:
            self.state.add(stored.header, stored.marker, 0)
        self.state.check_invariants()


def header_of(producer_id: int, epoch: int, sequence: int, kind: int = TRANSACTIONAL) -> BatchHeader:
    """Return the header of a batch of one record."""
    return BatchHeader(0, 100, 0, 2, 0, kind, 0, 0, 0, producer_id, epoch, sequence, 1)


class TransactionBroker:
    """The coordinator of all transactional ids, and the partitions they write to."""

    def __init__(self, world: World, crashes: float, refusals: float, hesitations: float) -> None:
        self.world = world
        self.crashes = crashes
        self.refusals = refusals
        self.hesitations = hesitations
        """The probability that the coordinator cannot verify a partition."""
        self.refused = RejectedSequences()
        self.down = False
        self.log: list[tuple[bytes, bytes | None]] = []
        self.machine = Transactions(self.world.now)
        self.partitions = {TopicPartition("t", index): SimulatedPartition() for index in range(4)}
        self._ids = 100
        self._retrying = False

    def call(self, request: Callable[[], Any]) -> Any:
        """Return the broker's response; None if it crashes before."""
        if self.down:
            return None
        try:
            return request()
        except Crashed:
            self.down = True
            self.world.say("broker", "crashes")
            self.world.after(self.world.chance.choice((0.01, 2.0)), self._come_back)
            return None

    # Requests of producers.

    def begin(self, name: str, producer_id: int, epoch: int) -> Answer:
        """InitProducerId."""

        def event() -> ProducerRequested:
            return ProducerRequested(
                1, name, TIMEOUT_MS, self._fresh_id(name), self.world.wall_ms(), producer_id, epoch
            )

        answer = self._ask(event)
        if answer.code == ErrorCode.CONCURRENT_TRANSACTIONS and self._finish(name):
            answer = self._ask(event)
        self.world.say(name, f"InitProducerId {producer_id}/{epoch}: {answer}")
        return answer

    def add(self, name: str, producer_id: int, epoch: int, partitions: frozenset[TopicPartition], version: int) -> int:
        """AddPartitionsToTxn."""
        event = PartitionsAdded(1, name, producer_id, epoch, partitions, self.world.wall_ms(), version)
        return self._ask(lambda: event).code

    def write(
        self, name: str, producer_id: int, epoch: int, sequence: int, place: TopicPartition, whose: Any, version: int
    ) -> int:
        """Produce: an error code."""
        partition = self.partitions[place]
        entry = partition.state.entries.get(producer_id)
        header = header_of(producer_id, epoch, sequence)
        code = 0
        if entry is None or entry.transaction_start < 0 or entry.epoch != epoch:
            code = self._verified(name, producer_id, epoch, place, version)
        if not code:
            try:
                if version >= V2:
                    transactional_write.ensure_starts_at_zero(entry, header)
                self.refused.ensure_header(place, TOPIC_ID, header, entry, self.world.now)
                partition.append(header, None, whose)
                self._maybe_crash()
            except KafkaError as error:
                code = error.code
        if is_sent_again(header, code):
            self.refused.note_header((place.topic, place.partition, producer_id), header, self.world.now)
        self.world.say(name, f"writes {whose} as {producer_id}/{epoch}:{sequence} to {place}: {code}")
        return code

    def write_pipelined(
        self,
        name: str,
        producer_id: int,
        epoch: int,
        sequences: Sequence[int],
        place: TopicPartition,
        whose: Any,
        version: int,
    ) -> list[int]:
        """Handle pipelined produce requests of one connection and return the error code of each."""
        return [self.write(name, producer_id, epoch, each, place, whose, version) for each in sequences]

    def end(self, name: str, producer_id: int, epoch: int, commit: bool, version: int) -> Answer:
        """EndTxn."""
        answer = self._ask(
            lambda: EndRequested(
                1, name, producer_id, epoch, commit, self._fresh_id(name), self.world.wall_ms(), version
            )
        )
        self.world.say(name, f"ends {producer_id}/{epoch}, commit={commit}: {answer}")
        self._finish(name)
        return answer

    def sweep(self) -> None:
        """Time passes."""
        event = TimePassed(1, self.world.wall_ms(), EXPIRATION_MS)
        self._keep(self.machine.decide(event, self.world.now).records)
        self._finish_all()

    # How it does that.

    def _verified(self, name: str, producer_id: int, epoch: int, place: TopicPartition, version: int) -> int:
        if self.world.likely(self.hesitations):
            return transactional_write.map_verification(self.world.chance.choice(HESITATIONS))
        if version >= V2:
            return self.add(name, producer_id, epoch, frozenset({place}), version)
        error = self.machine.write_error(name, producer_id, epoch)
        if not error and self.machine.missing_partitions(name, {place}):
            return ErrorCode.TRANSACTION_ABORTABLE
        return error

    def _fresh_id(self, name: str) -> int:
        if not self.machine.can_need_producer_id(name):
            return -1
        self._ids += 1
        return self._ids

    def _ask(self, event: Callable[[], Any]) -> Answer:
        decision = self.machine.decide(event(), self.world.now)
        self._keep(decision.records)
        answer = decision.replies[0].message
        assert isinstance(answer, Answer)
        return answer

    def _keep(self, records: tuple[TransactionRecord, ...]) -> None:
        for record in records:
            self.log.append(encode_record(record))
            self.machine.replay(record)
            if record.transaction is not None:
                self.world.say(record.transactional_id, f"is {record.transaction.state.title}")
        self.machine.check()
        if records:
            self._maybe_crash()

    def _maybe_crash(self) -> None:
        if self.world.likely(self.crashes):
            raise Crashed

    def _finish(self, name: str) -> bool:
        transaction = self.machine.by_id.get(name)
        if transaction is None or not transaction.state.is_prepared:
            return False
        written = [self._mark(place, transaction) for place in sorted(transaction.partitions)]
        if all(written):
            self._ask(lambda: MarkersWritten(1, name, self.world.wall_ms()))
            return True
        self._try_again()
        return False

    def _mark(self, place: TopicPartition, transaction: Transaction) -> bool:
        if self.world.likely(self.refusals):
            return False
        kind = ControlType.COMMIT if transaction.state == TransactionState.PREPARE_COMMIT else ControlType.ABORT
        try:
            header = header_of(transaction.producer_id, transaction.producer_epoch, -1, TRANSACTIONAL | CONTROL)
            self.partitions[place].append(header, EndMarker(kind, 0), None, transaction.version)
        except KafkaError as error:
            self.world.say("broker", f"marker for {transaction.transactional_id} refused by {place}: {error}")
            return False
        self.world.say("broker", f"{kind.name} of {transaction.producer_id} in {place}")
        self._maybe_crash()
        return True

    def _finish_all(self) -> None:
        for transaction in self.machine.find_unfinished():
            self._finish(transaction.transactional_id)

    def _try_again(self) -> None:
        if not self._retrying:
            self._retrying = True
            self.world.after(RETRY_SECONDS, lambda: self.call(self._retry))

    def _retry(self) -> None:
        self._retrying = False
        self._finish_all()

    def _come_back(self) -> None:
        self.down = self._retrying = False
        self.refused = RejectedSequences()
        self.machine = Transactions(self.world.now)
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            self.machine.replay(record)
        self.machine.check()
        for partition in self.partitions.values():
            partition.reload()
        self.call(self._finish_all)
