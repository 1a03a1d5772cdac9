"""A history of transactions: producers start, freeze, die and are replaced, and requests arrive late or twice.

In every history each transaction has the same outcome in all of its partitions, as reported to its producer. No transaction
contains records of another producer. After the faults end, no partition has an open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple

from ottla.coordination.transactions.records import TransactionRecord, encode_record
from ottla.coordination.transactions.transaction import EXHAUSTED, V2, Transaction
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.records.batch import BatchHeader
from ottla.records.control import ControlType
from tests.simulation.transaction_broker import TIMEOUT_MS, TransactionBroker
from tests.simulation.world import World

RETRIED = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS
MAX_IN_FLIGHT_BATCHES = 5
PATIENCE = 120.0


class Whose(NamedTuple):
    """A transaction of a producer."""

    producer: int
    transaction: int

    def __str__(self) -> str:
        return f"p{self.producer}.{self.transaction}"


class Pause(NamedTuple):
    """A producer does nothing for so many seconds."""

    span: float


Request = Callable[[], Any] | Pause
Life = Generator[Request, Any, None]


class Producer:
    """One process that writes under a transactional id."""

    def __init__(self, history: TransactionHistory, number: int, name: str, version: int) -> None:
        self.history = history
        self.number = number
        self.name = name
        self.version = version
        self.alive = True
        self.id = self.epoch = -1
        self.sequences: dict[TopicPartition, int] = {}
        self.frozen_until = 0.0
        self._life = self._live()
        self._go_on(None)

    def _live(self) -> Life:
        """Transactions, one after the other, until it is fenced."""
        chance, broker = self.history.world.chance, self.history.broker
        if not (yield from self._begin()):
            return
        for number in range(chance.randint(1, 6)):
            whose = Whose(self.number, number)
            fine = yield from self._write(whose)
            if fine is None:
                return
            if chance.random() < 0.15:
                yield Pause(chance.choice((1.0, 25.0)))
            commit = fine and chance.random() < 0.7
            self.history.wished[whose] = commit
            if commit and self.version >= V2 and chance.random() < 0.1:
                self._change_its_mind()
            answer = yield from self._patiently(
                partial(broker.end, self.name, self.id, self.epoch, commit, self.version)
            )
            if answer.code:
                return
            self.history.reported[whose] = commit
            if self.version >= V2:
                self._become(answer.producer_id, answer.epoch)
            elif chance.random() < 0.2 and not (yield from self._begin(again=True)):
                return

    def _change_its_mind(self) -> None:
        """The opposite outcome is requested too, without waiting: one of the two requests is too late."""
        world, broker = self.history.world, self.history.broker
        request = partial(broker.end, self.name, self.id, self.epoch, False, self.version)
        world.after(world.chance.random() * 0.3, lambda: broker.call(request) and None)

    def _begin(self, again: bool = False) -> Generator[Request, Any, bool]:
        broker = self.history.broker
        place = (self.id, self.epoch) if again else (-1, -1)
        answer = yield from self._patiently(partial(broker.begin, self.name, *place))
        if answer.code:
            return False
        self._become(answer.producer_id, answer.epoch)
        return True

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.id, self.epoch):
            self.id, self.epoch = producer_id, epoch
            self.sequences.clear()

    def _write(self, whose: Whose) -> Generator[Request, Any, bool | None]:
        """Return True if all is written; None if another producer took over."""
        chance, broker = self.history.world.chance, self.history.broker
        for number in range(chance.randint(1, 5)):
            place = chance.choice(sorted(broker.partitions))
            about = (self.name, self.id, self.epoch)
            if self.version < V2:
                code = yield from self._patiently(partial(broker.add, *about, frozenset({place}), self.version))
                if code:
                    return None
            count = chance.choice((1, 1, chance.randint(2, MAX_IN_FLIGHT_BATCHES)))
            code = yield from self._pipeline(place, whose, count)
            if code == ErrorCode.TRANSACTION_ABORTABLE:
                return False
            if code:
                return None
            self.sequences[place] = self.sequences.get(place, 0) + count
            self.history.written.setdefault(whose, []).extend([place] * count)
            if not number and chance.random() < 0.05:
                yield Pause(chance.choice((1.0, 25.0)))
        return True

    def _pipeline(self, place: TopicPartition, whose: Whose, count: int) -> Generator[Request, Any, int]:
        """Write batches that are in flight together, those that are refused again as Java's producer does; an error
        code.
        """
        broker, first = self.history.broker, self.sequences.get(place, 0)
        codes: dict[int, int]
        left = list(range(first, first + count))
        while True:
            about = (self.name, self.id, self.epoch, tuple(left), place, whose, self.version)
            codes = dict(zip(left, (yield partial(broker.write_pipelined, *about)), strict=True))
            assert codes[left[0]] != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
                f"{whose} can never write sequence {left[0]} to {place}: those after it are there already"
            )
            left = [sequence for sequence, code in codes.items() if code]
            for sequence in left:
                if codes[sequence] not in (*RETRIED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
                    return codes[sequence]
            if not left:
                return ErrorCode.NONE
            yield Pause(0.1)

    def _patiently(self, request: Callable[[], Any]) -> Generator[Request, Any, Any]:
        """The response, requested again while the previous transaction is being completed."""
        while True:
            answer = yield request
            if getattr(answer, "code", answer) not in RETRIED:
                return answer
            yield Pause(0.1)

    def _go_on(self, answer: Any) -> None:
        world = self.history.world
        if not self.alive:
            return
        if world.now < self.frozen_until:
            world.at(self.frozen_until, lambda: self._go_on(answer))
            return
        try:
            request = self._life.send(answer)
        except StopIteration:
            self.alive = False
            self.history.world.say(self.name, f"p{self.number} is done")
            return
        if isinstance(request, Pause):
            world.after(request.span, lambda: self._go_on(None))
        else:
            self._send(request)

    def _send(self, request: Callable[[], Any]) -> None:
        world, history = self.history.world, self.history
        if world.likely(history.repeats):
            world.after(world.chance.choice((0.01, 3.0, 30.0)), lambda: history.broker.call(request))
        world.after(world.chance.random() * 0.05, lambda: self._arrive(request))

    def _arrive(self, request: Callable[[], Any]) -> None:
        world = self.history.world
        answer = self.history.broker.call(request)
        if answer is None or world.likely(self.history.losses):
            world.after(0.3, lambda: self._send(request) if self.alive else None)
        else:
            world.after(world.chance.random() * 0.05, lambda: self._go_on(answer))


class TransactionHistory:
    """Some transactional ids from their beginning to the end."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        chance = world.chance
        self.losses = chance.choice((0.0, 0.05, 0.2))
        self.repeats = chance.choice((0.0, 0.0, 0.1))
        crashes, refusals, hesitations = (
            chance.choice(each) for each in ((0.0, 0.01, 0.05), (0.0, 0.0, 0.2), (0.0, 0.3))
        )
        self.broker = TransactionBroker(world, crashes, refusals, hesitations)
        self.version = chance.choice((0, V2))
        if self.version < V2:
            # All transactions of a producer have the same epoch: a late EndTxn would end the next one. What KIP-890 mends.
            self.repeats = 0.0
        self.names = [f"id{number}" for number in range(chance.randint(1, 3))]
        self.producers: list[Producer] = []
        self.wished: dict[Whose, bool] = {}
        self.reported: dict[Whose, bool] = {}
        self.written: dict[Whose, list[TopicPartition]] = {}
        if chance.random() < 0.3:
            self._use_epochs_up()

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        """Trouble, then quiet."""
        world, chance = self.world, self.world.chance
        end = world.now + chance.choice((10.0, 40.0))
        while world.now < end:
            world.run_until(world.now + chance.expovariate(0.7))
            self._befall()
        self.losses = self.repeats = self.broker.crashes = self.broker.refusals = self.broker.hesitations = 0.0
        for producer in self.producers:
            producer.alive = producer.alive and producer.frozen_until <= world.now
        deadline = world.now + PATIENCE
        while world.now < deadline and self._is_busy():
            world.run_until(world.now + 5.0)
            self.broker.call(self.broker.sweep)
        for place, log in self.broker.partitions.items():
            assert not log.state.open, f"{place} waits for the end of {log.state.open}"
        self._check_completeness(self._check())

    def _is_busy(self) -> bool:
        opened = any(log.state.open for log in self.broker.partitions.values())
        return opened or any(producer.alive for producer in self.producers)

    def _befall(self) -> None:
        chance = self.world.chance
        living = [producer for producer in self.producers if producer.alive]
        match chance.choices(("come", "freeze", "die", "sweep"), (5, 1.5, 1, 2))[0]:
            case "come":
                self.producers.append(Producer(self, len(self.producers), chance.choice(self.names), self.version))
            case "freeze" if living:
                chance.choice(living).frozen_until = self.world.now + chance.choice((1.0, 10.0, 40.0))
            case "die" if living:
                chance.choice(living).alive = False
            case "sweep":
                self.broker.call(self.broker.sweep)

    def _use_epochs_up(self) -> None:
        """Leave few epochs for the first id."""
        used = EXHAUSTED - self.world.chance.randint(0, 3)
        transaction = Transaction(
            transactional_id=self.names[0],
            producer_id=1,
            producer_epoch=used,
            timeout_ms=TIMEOUT_MS,
            updated_ms=self.world.wall_ms(),
            version=self.version,
        )
        record = TransactionRecord(self.names[0], transaction)
        self.broker.log.append(encode_record(record))
        self.broker.machine.replay(record)

    def _check(self) -> dict[Whose, list[TopicPartition]]:
        """Check the invariants; return the partitions in which committed readers see records of each transaction."""
        outcomes: dict[Whose, set[bool]] = {}
        visible: dict[Whose, list[TopicPartition]] = {}
        for place, log in self.broker.partitions.items():
            open_: dict[int, list[Whose]] = {}
            next_sequences: dict[tuple[int, int], int] = {}
            for stored in log.log:
                if stored.marker is None:
                    self._check_sequence(place, stored.header, next_sequences)
                own = open_.setdefault(stored.header.producer_id, [])
                if stored.marker is None:
                    assert not own or own[0] == stored.whose, (
                        f"{stored.whose} is in the transaction of {own[0]} in {place}"
                    )
                    own.append(stored.whose)
                    continue
                commit = stored.marker.type is ControlType.COMMIT
                for whose in own:
                    outcomes.setdefault(whose, set()).add(commit)
                    if commit:
                        visible.setdefault(whose, []).append(place)
                own.clear()
        self._check_outcomes(outcomes)
        return visible

    def _check_sequence(
        self, place: TopicPartition, header: BatchHeader, next_sequences: dict[tuple[int, int], int]
    ) -> None:
        producer = header.producer_id, header.producer_epoch
        expected = next_sequences.get(producer, 0)
        assert header.base_sequence == expected, f"{producer}: {header.base_sequence}, not {expected}, is in {place}"
        next_sequences[producer] = expected + 1

    def _check_outcomes(self, outcomes: dict[Whose, set[bool]]) -> None:
        for whose, ends in outcomes.items():
            assert len(ends) == 1, f"{whose} is committed in one partition and aborted in another"
            (commit,) = ends
            reported = self.reported.get(whose)
            assert reported is None or reported == commit, f"{whose} was told commit={reported}, and is {commit}"
            assert not commit or self.wished.get(whose), f"{whose} is committed, and nobody asked for that"

    def _check_completeness(self, visible: dict[Whose, list[TopicPartition]]) -> None:
        for whose, commit in self.reported.items():
            if commit:
                assert sorted(visible.get(whose, [])) == sorted(self.written.get(whose, [])), (
                    f"{whose} is not all there"
                )
