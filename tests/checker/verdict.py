"""Violations of the broker's guarantees in a history. Pure.

    lost · doubled · reordered · moved · phantom             of records
    unseen · torn · seen_aborted · early · skipped           of transactions and their readers
    zombie · hanging                                         of producers
    offset_of_aborted · offset_lost · taken_twice · not_taken   of reading within transactions

A transaction with an unknown outcome was committed or aborted as a whole; its visible records show which.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.checker.case import Case, Transaction
from tests.checker.history import Event, Position, Saw, Sent, Took


class Anomaly(NamedTuple):
    """One broken promise."""

    kind: str
    text: str


def verdict(events: Iterable[Event]) -> list[Anomaly]:
    """Every broken promise of a history; none is what a broker is to reach."""
    case = Case(events)
    found: list[Anomaly] = []
    for check in (of_records, of_order, of_transactions, of_readers, of_zombies, of_offsets, of_taking):
        found += check(case)
    return found


def of_records(case: Case) -> Iterator[Anomaly]:
    """Lost, doubled, moved, made up, or behind a transaction that never ends."""
    for value, (_, reported) in case.acknowledged.items():
        sent = case.sent[value][1]
        if sent.transaction is None and not case.is_visible(sent):
            yield Anomaly(
                "lost", f"{value} was acknowledged at {reported.place} offset {reported.offset}, and is not there"
            )
        elif case.is_visible(sent) and case.offsets[sent.place, value] != reported.offset:
            there = case.offsets[sent.place, value]
            yield Anomaly("moved", f"{value} was acknowledged at offset {reported.offset} and is at {there}")
    for place, final in case.final.items():
        counts = Counter(value for _, value in final.rows)
        for value, count in counts.items():
            if count > 1:
                yield Anomaly("doubled", f"{value} is {count} times in {place}")
            if value not in case.sent or case.sent[value][1].place != place:
                yield Anomaly("phantom", f"nobody sent {value} to {place}")
        if final.stable < final.end:
            yield Anomaly("hanging", f"readers of {place} come to offset {final.stable} of {final.end}")


def of_order(case: Case) -> Iterator[Anomaly]:
    """The values of one sender at one place are in the order of sending."""
    for place, final in case.final.items():
        latest: dict[str, Sent] = {}
        for _, value in final.rows:
            sent = case.sent[value][1] if value in case.sent else None
            if sent is None:
                continue
            before = latest.get(sent.sender)
            if before is not None and before.number > sent.number:
                yield Anomaly("reordered", f"{sent.value} comes after {before.value} in {place}")
            latest[sent.sender] = sent


def of_transactions(case: Case) -> Iterator[Anomaly]:
    """All of a transaction is seen, or nothing of it, as was said and asked for."""
    for key, transaction in case.transactions.items():
        visible = [sent.value for sent in transaction.sends if case.is_visible(sent)]
        # Some of the records of a failed transaction were never taken by the broker; of a committed one all were.
        missing = [sent.value for sent in transaction.sends if not case.is_visible(sent)]
        if transaction.outcome is True and missing:
            yield Anomaly("unseen", f"{key} was committed, and {', '.join(missing)} cannot be seen")
        elif visible and not transaction.may_be_committed:
            yield Anomaly("seen_aborted", f"{key} was not committed, and {', '.join(visible)} can be seen")
        elif visible and missing:
            yield Anomaly("torn", f"of {key} {', '.join(visible)} can be seen, and {', '.join(missing)} cannot")


def of_readers(case: Case) -> Iterator[Anomaly]:
    """Readers of committed records see what is committed, in order, all of it, and nothing before its time."""
    position: dict[tuple[str, str], int] = {}
    for at, event in case.of_kind(Saw):
        assert isinstance(event, Saw)
        who = (event.reader, event.place)
        next_offset = event.start if event.again or who not in position else position[who]
        for offset, value in event.rows:
            yield from of_sight(case, at, event.place, offset, value)
            yield from skipped(case, event, next_offset, offset)
            next_offset = offset + 1
        position[who] = next_offset


def of_sight(case: Case, at: int, place: str, offset: int, value: str) -> Iterator[Anomaly]:
    """One record that a reader was given as event number `at`."""
    there = case.offsets.get((place, value))
    if value not in case.sent:
        yield Anomaly("phantom", f"a reader of {place} was given {value}, which nobody sent")
        return
    _, sent = case.sent[value]
    transaction = case.transactions[sent.transaction] if sent.transaction else None
    if transaction is not None and not transaction.may_be_committed:
        yield Anomaly("seen_aborted", f"a reader was given {value} of {sent.transaction}, which was not committed")
    elif transaction is not None and (transaction.commit_asked_at or 0) > at:
        yield Anomaly("early", f"a reader was given {value} before the commit of {sent.transaction} was asked for")
    elif there is None:
        yield Anomaly("lost", f"a reader was given {value} at {place} offset {offset}, and it is not there at last")
    elif there != offset:
        yield Anomaly("moved", f"a reader was given {value} at {place} offset {offset}, and it is at {there}")


def skipped(case: Case, event: Saw, expected: int, offset: int) -> Iterator[Anomaly]:
    """Records that a reader should have got before the record at `offset`."""
    if offset < expected:
        yield Anomaly("reordered", f"{event.reader} was given {event.place} offset {offset} after {expected - 1}")
        return
    final = case.final.get(event.place)
    if final is not None and offset > expected:
        left_out = [value for at, value in final.rows if expected <= at < offset]
        if left_out:
            yield Anomaly("skipped", f"{event.reader} was not given {', '.join(left_out)} of {event.place}")


def of_zombies(case: Case) -> Iterator[Anomaly]:
    """Once a transactional id has a new producer, the old one can neither write nor commit."""
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for at, event in case.of_kind(Took):
        assert isinstance(event, Took)
        taken[event.name].append((at, event.instance))
    for key, transaction in case.transactions.items():
        began = transaction.began
        fenced_at = next((at for at, instance in taken[began.name] if instance > began.instance), None)
        if fenced_at is None:
            continue
        if transaction.outcome and transaction.commit_asked_at is not None and transaction.commit_asked_at > fenced_at:
            yield Anomaly("zombie", f"{key} was committed by a producer that had been replaced")
        for sent in transaction.sends:
            late = case.sent[sent.value][0] > fenced_at
            if late and sent.value in case.acknowledged:
                yield Anomaly("zombie", f"{sent.value} was taken from a producer that had been replaced")


def of_offsets(case: Case) -> Iterator[Anomaly]:
    """Committed offsets of groups are those of committed transactions."""
    promises: dict[tuple[str, str], list[tuple[Transaction, int]]] = defaultdict(list)
    for transaction in case.transactions.values():
        for promise in transaction.promises:
            promises[promise.group, promise.place].append((transaction, promise.offset))
    for at, event in case.of_kind(Position):
        assert isinstance(event, Position)
        made = promises[event.group, event.place]
        yield from of_position(case, at, event, made)


def of_position(
    case: Case, at: int, position: Position, promises: Sequence[tuple[Transaction, int]]
) -> Iterator[Anomaly]:
    """One committed offset that a group received."""
    where = f"{position.group} was told {position.offset} for {position.place}"
    possible = {
        offset
        for transaction, offset in promises
        if transaction.at < at and transaction.commit_asked_at is not None and transaction.commit_asked_at < at
        if transaction.outcome is not False
    }
    kept = [
        offset
        for transaction, offset in promises
        if transaction.outcome and transaction.ended_at is not None and transaction.ended_at < position.asked
    ]
    least = max(kept, default=-1)
    if position.offset < least:
        yield Anomaly("offset_lost", f"{where}, and {least} was committed before")
    elif position.offset >= 0 and position.offset not in possible:
        yield Anomaly("offset_of_aborted", f"{where}, which no committed transaction promised")


def of_taking(case: Case) -> Iterator[Anomaly]:
    """The records read by committed transactions: each once, and none below the group's last offset left out."""
    taken: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for key, transaction in case.transactions.items():
        yield from of_reads(case, key, transaction)
        if not case.was_committed(transaction):
            continue
        groups = {promise.place: promise.group for promise in transaction.promises}
        for read in transaction.reads:
            taken[groups.get(read.place, "no group"), read.place][read.offset] += 1
    last = last_positions(case)
    for (group, place), offsets in taken.items():
        twice = [offset for offset, count in offsets.items() if count > 1]
        if twice:
            yield Anomaly("taken_twice", f"{group} took {place} offsets {twice} more than once")
        rows = case.final[place].rows if place in case.final else ()
        left = [offset for offset, _ in rows if offset < last.get((group, place), -1) and offset not in offsets]
        if left:
            yield Anomaly("not_taken", f"{group} has gone beyond {place} offsets {left} without taking them")


def of_reads(case: Case, key: str, transaction: Transaction) -> Iterator[Anomaly]:
    """The records read by one transaction are in order, complete and committed."""
    for place in {read.place for read in transaction.reads}:
        offsets = [read.offset for read in transaction.reads if read.place == place]
        rows = case.final[place].rows if place in case.final else ()
        between = [offset for offset, _ in rows if offsets[0] <= offset <= offsets[-1]]
        if rows and offsets != between:
            yield Anomaly("inconsistent", f"{key} read {place} offsets {offsets}, and there are {between}")


def last_positions(case: Case) -> Mapping[tuple[str, str], int]:
    """Return the last offset that each group received for each place."""
    return {
        (event.group, event.place): event.offset for _, event in case.of_kind(Position) if isinstance(event, Position)
    }
