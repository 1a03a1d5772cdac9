"""Transactions, as transcripts: a command, the written records, the responses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.transactions.events import (
    Answer,
    EndRequested,
    Event,
    MarkersWritten,
    PartitionsAdded,
    ProducerRequested,
    TimePassed,
)
from ottla.coordination.transactions.records import TransactionRecord, decode_record, encode_record
from ottla.coordination.transactions.state import PREVIOUS, TransactionState
from ottla.coordination.transactions.transaction import EXHAUSTED, Transaction
from ottla.coordination.transactions.transactions import Transactions
from ottla.errors import CorruptRecordError, ErrorCode
from ottla.model import TopicPartition
from tests.coordination.transcript import run

HOUR_MS = 3_600_000


def parted(command: str) -> tuple[str, dict[str, str]]:
    verb, *words = command.split()
    return verb, dict(word.split("=") for word in words)


def now_of(command: str) -> float:
    """Return the monotonic time: `clock` in ms, if it differs from the wall clock."""
    said = parted(command)[1]
    return int(said.get("clock", said.get("now", 0))) / 1000


def event_of(command: str) -> Event:
    """`VERB name=value …`; `a` is the id of all, `now` the time in ms, `v` the version of transactions."""
    verb, said = parted(command)
    now, fresh, version = (int(said.get(name, 0)) for name in ("now", "fresh", "v"))
    producer, epoch = int(said.get("id", 1)), int(said.get("epoch", 0))
    match verb:
        case "init":
            named = "id" in said
            return ProducerRequested(1, "a", 60_000, fresh or 1, now, producer if named else -1, epoch if named else -1)
        case "add":
            partitions = frozenset(TopicPartition("t", int(index)) for index in said["to"].split(","))
            return PartitionsAdded(1, "a", producer, epoch, partitions, now, version)
        case "commit" | "abort":
            return EndRequested(1, "a", producer, epoch, verb == "commit", fresh or 99, now, version)
        case "marked":
            return MarkersWritten(1, "a", now)
        case _:
            return TimePassed(1, now, HOUR_MS)


def show_record(record: TransactionRecord) -> str:
    transaction = record.transaction
    if transaction is None:
        return f"{record.transactional_id} forgotten"
    indexes = ",".join(str(each.partition) for each in sorted(transaction.partitions))
    return f"{transaction.state.title} {transaction.producer_id}/{transaction.producer_epoch} [{indexes}]"


def show_reply(message: Answer | tuple[int, int]) -> list[str]:
    if isinstance(message, tuple):
        return [f"{message[0]} aborted, {message[1]} forgotten"]
    if message.code:
        return [message.code.name]
    return ["ok" if message.producer_id < 0 else f"{message.producer_id}/{message.epoch}"]


def play(text: str, machine: Transactions | None = None) -> Transactions:
    machine = machine or Transactions(0.0)
    run(machine, text, event_of, show_record, show_reply, now_of)
    return machine


def test_a_transaction_is_started_prepared_marked_and_completed() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0,1
        record Ongoing 1/0 [0,1]
        reply ok

        add to=1 → reply ok

        commit
        record PrepareCommit 1/0 [0,1]
        reply 1/0

        marked
        record CompleteCommit 1/0 []
        reply 1/0

        add to=2
        record Ongoing 1/0 [2]
        reply ok

        abort
        record PrepareAbort 1/0 [2]
        reply 1/0
    """)


def test_each_transaction_of_version_2_has_an_epoch_of_its_own() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0 v=2
        record Ongoing 1/0 [0]
        reply ok

        commit v=2
        record PrepareCommit 1/1 [0]
        reply 1/1

        commit v=2 → reply CONCURRENT_TRANSACTIONS

        marked
        record CompleteCommit 1/1 []
        reply 1/1

        commit v=2 → reply 1/1
        abort v=2 → reply INVALID_TXN_STATE
        commit v=2 epoch=1 → reply INVALID_TXN_STATE

        abort v=2 epoch=1
        record PrepareAbort 1/2 []
        reply 1/2
    """)


def test_the_end_of_a_transaction_waits_for_the_previous_one() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0 v=2
        record Ongoing 1/0 [0]
        reply ok

        commit v=2
        record PrepareCommit 1/1 [0]
        reply 1/1

        add to=0 epoch=1 v=2 → reply CONCURRENT_TRANSACTIONS
        abort v=2 epoch=1 → reply CONCURRENT_TRANSACTIONS
        commit v=2 epoch=1 → reply CONCURRENT_TRANSACTIONS
        abort v=2 epoch=2 → reply PRODUCER_FENCED

        marked
        record CompleteCommit 1/1 []
        reply 1/1

        abort v=2 epoch=1
        record PrepareAbort 1/2 []
        reply 1/2

        abort v=2 epoch=2 → reply CONCURRENT_TRANSACTIONS
    """)


@pytest.mark.parametrize(("settled", "other", "state"), [("commit", "abort", "Commit"), ("abort", "commit", "Abort")])
def test_a_request_for_the_opposite_outcome_is_rejected_when_the_transaction_ends(
    settled: str, other: str, state: str
) -> None:
    play(f"""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0
        record Ongoing 1/0 [0]
        reply ok

        {settled}
        record Prepare{state} 1/0 [0]
        reply 1/0

        {other} → reply CONCURRENT_TRANSACTIONS

        marked
        record Complete{state} 1/0 []
        reply 1/0

        {other} → reply INVALID_TXN_STATE

        add to=0 v=2
        record Ongoing 1/0 [0]
        reply ok

        {settled} v=2
        record Prepare{state} 1/1 [0]
        reply 1/1

        {other} v=2 → reply CONCURRENT_TRANSACTIONS

        marked
        record Complete{state} 1/1 []
        reply 1/1

        {other} v=2 → reply INVALID_TXN_STATE
    """)


def test_a_new_producer_fences_the_old_one_and_its_transaction_is_aborted_first() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0
        record Ongoing 1/0 [0]
        reply ok

        init
        record PrepareAbort 1/1 [0]
        reply CONCURRENT_TRANSACTIONS

        init → reply CONCURRENT_TRANSACTIONS

        marked
        record CompleteAbort 1/1 []
        reply 1/1

        init
        record Empty 1/2 []
        reply 1/2

        add to=0 → reply PRODUCER_FENCED
        commit → reply PRODUCER_FENCED
        add to=0 id=7 → reply INVALID_PRODUCER_ID_MAPPING
    """)


def test_a_producer_that_names_its_epoch_gets_the_next_and_may_retry() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        init id=1 epoch=0
        record Empty 1/1 []
        reply 1/1

        init id=1 epoch=0
        record Empty 1/1 []
        reply 1/1

        init
        record Empty 1/2 []
        reply 1/2

        init id=1 epoch=1 → reply PRODUCER_FENCED
        init id=5 epoch=0 → reply PRODUCER_FENCED
    """)


TIMED_OUT = """
        init
        record Empty 1/0 []
        reply 1/0

        add to=0 now=1000 {version}
        record Ongoing 1/0 [0]
        reply ok

        time now=61001
        record PrepareAbort 1/1 [0]
        reply 1 aborted, 0 forgotten

        abort v=2 → reply CONCURRENT_TRANSACTIONS

        marked now=61002
        record CompleteAbort 1/1 []
        reply 1/1
"""


@pytest.mark.parametrize("version", ["", "v=2"])
def test_a_producer_with_a_timed_out_transaction_aborts_it_and_continues_with_the_next_epoch(version: str) -> None:
    play(f"""
        {TIMED_OUT.format(version=version)}
        add to=0 v=2 → reply PRODUCER_FENCED
        abort v=2 → reply 1/1
        abort v=2 → reply 1/1

        add to=0 epoch=1 v=2
        record Ongoing 1/1 [0]
        reply ok

        commit epoch=1 v=2
        record PrepareCommit 1/2 [0]
        reply 1/2
    """)


@pytest.mark.parametrize("version", ["", "v=2"])
def test_a_producer_with_a_timed_out_transaction_may_request_the_next_epoch_instead(version: str) -> None:
    play(f"""
        {TIMED_OUT.format(version=version)}
        init id=1 epoch=0
        record Empty 1/1 []
        reply 1/1

        init id=1 epoch=0
        record Empty 1/1 []
        reply 1/1
    """)


def test_a_new_producer_after_a_timeout_fences_the_previous_producer() -> None:
    play(f"""
        {TIMED_OUT.format(version="v=2")}
        init
        record Empty 1/2 []
        reply 1/2

        abort v=2 → reply PRODUCER_FENCED
        init id=1 epoch=0 → reply PRODUCER_FENCED
    """)


def test_an_older_client_with_a_timed_out_transaction_is_fenced() -> None:
    play(f"""
        {TIMED_OUT.format(version="")}
        abort → reply PRODUCER_FENCED
        commit → reply PRODUCER_FENCED
    """)


def test_a_time_out_at_the_last_epoch_leads_to_a_new_producer_id() -> None:
    play(
        """
        time now=99999999
        record PrepareAbort 1/32767 [0]
        reply 1 aborted, 0 forgotten

        marked
        record CompleteAbort 1/32767 []
        reply 1/32767

        abort v=2 epoch=32766 → reply PRODUCER_FENCED

        init id=1 epoch=32766 fresh=5
        record Empty 5/0 []
        reply 5/0

        init id=1 epoch=32766 fresh=6
        record Empty 5/0 []
        reply 5/0
    """,
        exhausted(EXHAUSTED, TransactionState.ONGOING),
    )


def test_a_timed_out_transaction_is_aborted_and_cannot_be_committed() -> None:
    play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0 now=1000 v=2
        record Ongoing 1/0 [0]
        reply ok

        time now=61000
        reply 0 aborted, 0 forgotten

        time now=61001
        record PrepareAbort 1/1 [0]
        reply 1 aborted, 0 forgotten

        marked now=61002
        record CompleteAbort 1/1 []
        reply 1/1

        commit v=2
        reply PRODUCER_FENCED

        abort v=2
        reply 1/1

        commit v=2
        reply PRODUCER_FENCED
    """)


@pytest.mark.parametrize("calendar", [-999_000, 1000, 9_999_000])
def test_a_wall_clock_change_does_not_change_the_transaction_timeout(calendar: int) -> None:
    play(f"""
        init clock=0 now=5000000
        record Empty 1/0 []
        reply 1/0

        add to=0 clock=1000 now=5001000 v=2
        record Ongoing 1/0 [0]
        reply ok

        add to=1 clock=30000 now={calendar} v=2
        record Ongoing 1/0 [0,1]
        reply ok

        time clock=61000 now={calendar} → reply 0 aborted, 0 forgotten

        time clock=61001 now={calendar}
        record PrepareAbort 1/1 [0,1]
        reply 1 aborted, 0 forgotten
    """)


def read_again(machine: Transactions, now: float) -> Transactions:
    """Return the state of the next coordinator, which reads it from the log."""
    again = Transactions(now)
    for name, transaction in machine.by_id.items():
        read = decode_record(*encode_record(TransactionRecord(name, transaction)))
        assert read is not None
        again.replay(read)
    return again


def test_a_transaction_of_another_coordinator_times_out_by_wall_clock_or_by_known_age() -> None:
    begun = play("""
        init now=5000000
        record Empty 1/0 []
        reply 1/0

        add to=0 now=5001000
        record Ongoing 1/0 [0]
        reply ok
    """)
    # Another machine's clock began at another time, and its calendar may have been set back.
    play(
        """
        time clock=37001 now=5061000 → reply 0 aborted, 0 forgotten

        time clock=37001 now=5061001
        record PrepareAbort 1/1 [0]
        reply 1 aborted, 0 forgotten
        """,
        read_again(begun, 7.0),
    )
    play(
        """
        time clock=67000 now=1000 → reply 0 aborted, 0 forgotten

        time clock=67001 now=1000
        record PrepareAbort 1/1 [0]
        reply 1 aborted, 0 forgotten
        """,
        read_again(begun, 7.0),
    )


def test_a_wall_clock_ahead_expires_no_transaction_within_thirty_seconds() -> None:
    begun = play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0
        record Ongoing 1/0 [0]
        reply ok
    """)
    play(
        """
        time clock=37000 now=9999000 → reply 0 aborted, 0 forgotten

        commit now=9999000
        record PrepareCommit 1/0 [0]
        reply 1/0
        """,
        read_again(begun, 7.0),
    )


def test_an_unused_id_expires_but_not_one_with_an_open_transaction() -> None:
    play("""
        init now=1
        record Empty 1/0 []
        reply 1/0

        time now=3600000
        reply 0 aborted, 0 forgotten

        time now=3600001
        record a forgotten
        reply 0 aborted, 1 forgotten

        add to=0
        reply INVALID_PRODUCER_ID_MAPPING

        init id=1 epoch=0 fresh=2
        record Empty 2/0 []
        reply 2/0
    """)


def exhausted(epoch: int, state: TransactionState = TransactionState.EMPTY) -> Transactions:
    """Return a machine with an id of which the producer has reached this epoch."""
    machine = Transactions(0.0)
    under_way = state == TransactionState.ONGOING
    partitions = frozenset({TopicPartition("t", 0)} if under_way else ())
    transaction = Transaction(
        transactional_id="a",
        producer_id=1,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        partitions=partitions,
        started_ms=0 if under_way else -1,
        updated_ms=0,
        version=2 if under_way else 0,
    )
    machine.replay(TransactionRecord("a", transaction))
    return machine


def test_a_producer_with_exhausted_epochs_gets_a_new_id() -> None:
    machine = exhausted(EXHAUSTED)
    assert machine.can_need_producer_id("a")
    play(
        """
        init id=1 epoch=32766 fresh=2
        record Empty 2/0 []
        reply 2/0

        init id=2 epoch=0
        record Empty 2/1 []
        reply 2/1
    """,
        machine,
    )


def test_the_last_epoch_is_used_up_in_the_midst_of_transactions_of_version_2() -> None:
    play(
        """
        commit v=2 epoch=32766 fresh=9
        record PrepareCommit 1/32767 [0]
        reply 9/0

        marked
        record CompleteCommit 9/0 []
        reply 9/0

        commit v=2 epoch=32766 → reply 9/0

        add to=0 v=2 id=9
        record Ongoing 9/0 [0]
        reply ok
    """,
        exhausted(EXHAUSTED, TransactionState.ONGOING),
    )


def test_a_producer_with_an_exhausted_id_may_retry_only_with_its_last_epoch() -> None:
    play(
        """
        init id=1 epoch=32766 fresh=2
        record Empty 2/0 []
        reply 2/0

        init id=1 epoch=32766
        record Empty 2/0 []
        reply 2/0

        init id=1 epoch=0 → reply PRODUCER_FENCED
        init id=1 epoch=32765 → reply PRODUCER_FENCED
        init id=7 epoch=32766 → reply PRODUCER_FENCED
        init id=7 epoch=0 → reply PRODUCER_FENCED
    """,
        exhausted(EXHAUSTED),
    )


def test_an_end_request_can_be_retried_with_the_previous_id_until_the_next_transaction_ends() -> None:
    play(
        """
        commit v=2 epoch=32766 fresh=9
        record PrepareCommit 1/32767 [0]
        reply 9/0

        marked
        record CompleteCommit 9/0 []
        reply 9/0

        commit v=2 epoch=32766 → reply 9/0
        commit v=2 epoch=32765 → reply INVALID_PRODUCER_ID_MAPPING
        commit v=2 id=7 epoch=32766 → reply INVALID_PRODUCER_ID_MAPPING

        add to=0 v=2 id=9
        record Ongoing 9/0 [0]
        reply ok

        abort v=2 id=9 epoch=0
        record PrepareAbort 9/1 [0]
        reply 9/1

        marked
        record CompleteAbort 9/1 []
        reply 9/1

        abort v=2 epoch=32766 → reply INVALID_PRODUCER_ID_MAPPING
    """,
        exhausted(EXHAUSTED, TransactionState.ONGOING),
    )


def test_a_producer_at_its_last_epoch_can_still_be_fenced() -> None:
    play(
        """
        init
        record PrepareAbort 1/32767 [0]
        reply CONCURRENT_TRANSACTIONS

        marked
        record CompleteAbort 1/32767 []
        reply 1/32767

        init fresh=5
        record Empty 5/0 []
        reply 5/0
    """,
        exhausted(EXHAUSTED, TransactionState.ONGOING),
    )


def test_an_end_without_a_transaction_is_rejected() -> None:
    play("""
        commit → reply INVALID_PRODUCER_ID_MAPPING

        init
        record Empty 1/0 []
        reply 1/0

        commit → reply INVALID_TXN_STATE
        abort → reply INVALID_TXN_STATE
        marked → reply INVALID_TXN_STATE
    """)


COMMANDS = st.sampled_from(
    ["init", "init id=1 epoch=0", "init id=1 epoch=1", "add to=0", "add to=1,2 v=2", "add to=0 epoch=1", "commit",
     "commit v=2", "abort v=2", "abort epoch=1", "abort v=2 epoch=1", "commit v=2 epoch=2", "marked", "marked", "time now=70000",
     "time now=9999999"]
)  # fmt: skip


@given(st.lists(COMMANDS, max_size=30))
def test_every_request_follows_the_state_table_and_the_log_restores_the_state(commands: list[str]) -> None:
    machine, stored = Transactions(0.0), []
    for command in commands:
        decision = machine.decide(event_of(command), now_of(command))
        assert len(decision.replies) == 1
        for record in decision.records:
            before = machine.by_id.get("a")
            assert record.transaction is None or before is None or before.state in PREVIOUS[record.transaction.state]
            machine.replay(record)
            stored.append(encode_record(record))
        machine.check()
    again = Transactions(0.0)
    for key, value in stored:
        read = decode_record(key, value)
        assert read is not None
        again.replay(read)
    again.check()
    assert {name: encode_record(TransactionRecord(name, each)) for name, each in again.by_id.items()} == {
        name: encode_record(TransactionRecord(name, each)) for name, each in machine.by_id.items()
    }
    assert [each.transactional_id for each in again.find_unfinished()] == [
        each.transactional_id for each in machine.find_unfinished()
    ]


@given(st.lists(COMMANDS, max_size=30))
def test_an_epoch_never_decreases_for_one_producer_id(commands: list[str]) -> None:
    machine = Transactions(0.0)
    highest: dict[int, int] = {}
    for command in commands:
        for record in machine.decide(event_of(command), now_of(command)).records:
            machine.replay(record)
            if record.transaction is None:
                highest.clear()
            else:
                producer, epoch = record.transaction.producer_id, record.transaction.producer_epoch
                assert epoch >= highest.get(producer, -1)
                highest[producer] = epoch


def test_an_unreadable_record_is_reported() -> None:
    machine = exhausted(3, TransactionState.ONGOING)
    key, value = encode_record(TransactionRecord("a", machine.by_id["a"]))
    assert value is not None
    for damaged in (value[:10], b"\x00\x07" + value[2:]):
        with pytest.raises(CorruptRecordError):
            decode_record(key, damaged)
    assert decode_record(b"\x00\x09", value) is None


@given(st.data())
def test_damaged_records_are_refused_or_read_but_never_anything_else(data: st.DataObject) -> None:
    key, value = encode_record(TransactionRecord("a", exhausted(3, TransactionState.ONGOING).by_id["a"]))
    assert value is not None
    place = data.draw(st.integers(0, len(value) - 1))
    damaged = value[:place] + data.draw(st.binary(max_size=4)) + value[place + data.draw(st.integers(0, 4)) :]
    try:
        decode_record(key, damaged)
    except CorruptRecordError:
        pass


def test_only_the_current_producer_may_write() -> None:
    machine = play("""
        init
        record Empty 1/0 []
        reply 1/0

        add to=0
        record Ongoing 1/0 [0]
        reply ok
    """)
    assert machine.write_error("a", 1, 0) == ErrorCode.NONE
    assert machine.write_error("a", 1, 5) == ErrorCode.PRODUCER_FENCED
    assert machine.write_error("b", 1, 0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert machine.missing_partitions("a", {TopicPartition("t", 0), TopicPartition("t", 1)}) == {TopicPartition("t", 1)}
