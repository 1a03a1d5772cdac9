"""Bugs: each makes the broker of this process break one promise. The checker must find them all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from msgspec.structs import replace

from ottla.broker.apis import transactional_write
from ottla.broker.apis.fast_path import FastPath
from ottla.broker.coordinators import transaction_coordinator
from ottla.broker.coordinators.transaction_markers import EndMarkers
from ottla.broker.node import BrokerNode
from ottla.coordination.offsets.pending import PendingOffsets
from ottla.coordination.transactions import transactions
from ottla.coordination.transactions.state import TransactionState
from ottla.errors import ErrorCode
from ottla.records.batch import parse_header
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.producers.producer_entry import Origin, ProducerEntry
from ottla.storage.producers.producer_state import ProducerStateManager

HELD_SECONDS = 0.5
# By what is no export of theirs.
MARKERS: Any = EndMarkers
COORDINATOR: Any = transaction_coordinator
MACHINE: Any = transactions


def forgets_a_marker() -> None:
    """Every third marker is said to be written, and is not."""
    write: Callable[..., int] = MARKERS.write
    numbers = count(1)
    MARKERS.write = lambda *arguments: 0 if next(numbers) % 3 == 0 else write(*arguments)


def commits_what_was_aborted() -> None:
    """Every marker is one of a commit."""
    write: Callable[..., int] = MARKERS.write
    MARKERS.write = lambda markers, place, end: write(markers, place, end._replace(commit=True))


def acknowledges_before_appending() -> None:
    """Plain batches are answered at once and appended in a while."""
    append = BrokerNode.append
    held: dict[Any, list[Any]] = {}

    def release(node: BrokerNode, partition: Any) -> None:
        for data in held.pop(partition, ()):
            append(node, partition, data)

    def hasty(self: BrokerNode, partition: Any, data: Any, **settings: Any) -> Appended:
        header = parse_header(data)
        if header.is_transactional or settings.get("origin", Origin.CLIENT) is not Origin.CLIENT:
            release(self, partition)
            return append(self, partition, data, **settings)
        if partition not in held:
            self.timers.schedule(self.clock.monotonic() + HELD_SECONDS, lambda: release(self, partition))
        waiting = held.setdefault(partition, [])
        base = partition.log.end_offset + sum(parse_header(each).count for each in waiting)
        waiting.append(bytes(data))
        return Appended(base, base + header.count - 1, -1, partition.log.start_offset)

    BrokerNode.append = hasty  # type: ignore[method-assign]
    FastPath.takes = lambda self, connection, frame, now, arrived: False  # type: ignore[method-assign]


def forgets_sequences_on_restart() -> None:
    """A log that is opened knows no producers but those with open transactions."""
    opened = Log.open.__func__  # type: ignore[attr-defined]

    def forgetful(cls: type[Log], *arguments: Any, **settings: Any) -> Log:
        log: Log = opened(cls, *arguments, **settings)
        entries = log.producers.entries
        for id_ in [id_ for id_, entry in entries.items() if entry.transaction_start < 0]:
            del entries[id_]
        return log

    Log.open = classmethod(forgetful)  # type: ignore[method-assign, assignment]


def shows_what_is_not_stable() -> None:
    """Readers of committed records are given all there is."""
    Log.last_stable_offset = property(lambda log: log.high_watermark)  # type: ignore[assignment,method-assign]


def lets_zombies_write() -> None:
    """No epoch is too old."""
    write_error = MACHINE.Transactions.write_error
    prepared = MACHINE.prepare_end

    def lenient(self: Any, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        error = write_error(self, transactional_id, producer_id, epoch)
        return ErrorCode.NONE if error == ErrorCode.PRODUCER_FENCED else error

    MACHINE.Transactions.write_error = lenient
    MACHINE.prepare_end = lambda transaction, event: prepared(
        transaction, replace(event, epoch=transaction.producer_epoch)
    )
    transactional_write.check_write = lambda *arguments: None
    ProducerEntry._check_epoch = lambda self, epoch: None  # type: ignore[method-assign]
    ProducerStateManager.check = lambda self, *arguments, **settings: None  # type: ignore[method-assign]


def forgets_prepared_transactions_on_restart() -> None:
    """A prepared transaction counts as completed when it is read again."""
    coding = COORDINATOR.CODING
    done = {
        TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
        TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
    }

    def forgetful(key: bytes | None, value: bytes | None) -> Any:
        record = coding.decode(key, value)
        found = record.transaction if record else None
        if record is None or found is None or not found.state.is_prepared:
            return record
        return record._replace(transaction=replace(found, state=done[found.state], partitions=frozenset()))

    COORDINATOR.CODING = replace(coding, decode=forgetful)


def keeps_offsets_of_aborted_transactions() -> None:
    """Promised offsets count however the transaction ends."""
    end = PendingOffsets.end
    PendingOffsets.end = lambda self, ended: end(self, ended._replace(commit=True))  # type: ignore[method-assign]


def forgets_promised_offsets() -> None:
    """They never count."""
    end = PendingOffsets.end
    PendingOffsets.end = lambda self, ended: end(self, ended._replace(commit=False))  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        forgets_a_marker,
        commits_what_was_aborted,
        acknowledges_before_appending,
        forgets_sequences_on_restart,
        shows_what_is_not_stable,
        lets_zombies_write,
        forgets_prepared_transactions_on_restart,
        keeps_offsets_of_aborted_transactions,
        forgets_promised_offsets,
    )
}
