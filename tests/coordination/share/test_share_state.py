"""The share coordinator's states, as transcripts: a request, the written records, the response."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.share.record_state import RecordState
from ottla.coordination.share.records import ShareSnapshotValue, ShareStateRecord, decode_record, encode_record
from ottla.coordination.share.share_state import (
    ColdSnapshotsDue,
    DeleteRequested,
    Event,
    InitializeRequested,
    KeyState,
    ReadRequested,
    SharePartitionKey,
    ShareState,
    SummaryRequested,
    TopicStatesDeleted,
    WriteRequested,
    from_wire_batches,
    key_of,
)
from ottla.coordination.share.state_batches import PersisterStateBatch
from ottla.errors import ErrorCode
from tests.coordination.share.story import parse_state_batches, show_state_batch
from tests.coordination.transcript import run

TOPIC = UUID(int=7)


def event_of(command: str) -> Event:
    """`VERB KEY name=value … batches`: the key is the index of a partition, `epoch` the state's, `leader` the leader's."""
    verb, *words = command.split()
    said = dict(word.split("=") for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    wall_ms, is_known = int(said.get("now", 0)), "unknown" not in names
    key = SharePartitionKey("g", TOPIC, int(names[0]) if names else 0)
    epoch, leader, start = (int(said.get(name, -1)) for name in ("epoch", "leader", "start"))
    match verb:
        case "init":
            return InitializeRequested(1, key, epoch, start, wall_ms, is_known)
        case "write":
            batches = parse_state_batches(" ".join(name for name in names if ":" in name))
            return WriteRequested(1, key, epoch, leader, start, int(said.get("done", -1)), batches, wall_ms, is_known)
        case "read":
            return ReadRequested(1, key, leader, wall_ms, is_known)
        case "summary":
            return SummaryRequested(1, key, is_known)
        case "delete":
            return DeleteRequested(1, key, is_known)
        case "drop":
            return TopicStatesDeleted(1, {TOPIC})
    assert verb == "cold", verb
    return ColdSnapshotsDue(1, int(said["before"]), wall_ms)


def show_record(record: ShareStateRecord) -> str:
    assert decode_record(*encode_record(record)) == record
    value, partition = record.value, record.key.partition
    if value is None:
        return f"tombstone {partition}"
    kind = "snapshot" if isinstance(value, ShareSnapshotValue) else "update"
    epoch = f" epoch={value.state_epoch}" if isinstance(value, ShareSnapshotValue) else ""
    batches = "".join(f" {show_state_batch(batch)}" for batch in from_wire_batches(value.state_batches))
    return (
        f"{kind} {partition} #{value.snapshot_epoch}{epoch} leader={value.leader_epoch} start={value.start_offset} "
        f"done={value.delivery_complete_count}{batches}"
    )


def show_reply(message: ErrorCode | KeyState | int | None) -> list[str]:
    if isinstance(message, KeyState):
        batches = "".join(f" {show_state_batch(batch)}" for batch in message.batches)
        return [f"epoch={message.state_epoch} leader={message.leader_epoch} start={message.start_offset} done={message.delivery_complete_count}{batches}"]  # fmt: skip
    return [message.name if isinstance(message, ErrorCode) else str(message)]


def play(text: str, machine: ShareState | None = None) -> ShareState:
    machine = machine or ShareState()
    run(machine, text, event_of, show_record, show_reply)
    return machine


def test_a_state_is_initialized_read_by_a_leader_and_written() -> None:
    play("""
        init 0 epoch=1 start=10
        record snapshot 0 #0 epoch=1 leader=0 start=10 done=0
        reply NONE

        read 0 leader=5
        record update 0 #0 leader=5 start=-1 done=-1
        reply epoch=1 leader=5 start=10 done=0

        read 0 leader=5 → reply epoch=1 leader=5 start=10 done=0

        write 0 epoch=1 leader=5 start=10 done=2 10-11:acknowledged/1 12-19:available/1
        record update 0 #0 leader=5 start=10 done=2 10-11:acknowledged/1 12-19:available/1
        reply NONE

        write 0 epoch=1 leader=5 start=12 done=1 14-14:acknowledged/2
        record update 0 #0 leader=5 start=12 done=1 14-14:acknowledged/2
        reply NONE

        read 0 leader=5 → reply epoch=1 leader=5 start=12 done=1 12-13:available/1 14-14:acknowledged/2 15-19:available/1
        summary 0 → reply epoch=1 leader=5 start=12 done=1 12-13:available/1 14-14:acknowledged/2 15-19:available/1
    """)


def test_a_leader_that_was_replaced_and_a_state_that_was_reset_are_fenced() -> None:
    play("""
        init 0 epoch=1 start=0
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        read 0 leader=5
        record update 0 #0 leader=5 start=-1 done=-1
        reply epoch=1 leader=5 start=0 done=0

        write 0 epoch=1 leader=4 start=0 0-1:acknowledged/1 → reply FENCED_LEADER_EPOCH
        read 0 leader=4 → reply FENCED_LEADER_EPOCH

        init 0 epoch=2 start=100
        record snapshot 0 #1 epoch=2 leader=5 start=100 done=0
        reply NONE

        write 0 epoch=1 leader=5 start=3 0-1:acknowledged/1 → reply FENCED_STATE_EPOCH
        init 0 epoch=1 start=0 → reply FENCED_STATE_EPOCH
    """)


def test_a_repeated_initialization_does_not_reset_the_state() -> None:
    play("""
        init 0 epoch=1
        record snapshot 0 #0 epoch=1 leader=0 start=-1 done=-1
        reply NONE

        write 0 epoch=1 leader=2 start=50 done=0
        record update 0 #0 leader=2 start=50 done=0
        reply NONE

        init 0 epoch=1 → reply NONE
        init 0 epoch=1 start=50 → reply NONE

        init 0 epoch=1 start=7
        record snapshot 0 #1 epoch=1 leader=2 start=7 done=0
        reply NONE
    """)


def test_a_delayed_write_does_not_bring_finished_records_back() -> None:
    play("""
        init 0 epoch=1 start=0
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        write 0 epoch=1 leader=0 start=10 done=0
        record update 0 #0 leader=0 start=10 done=0
        reply NONE

        write 0 epoch=1 leader=0 start=5 done=0 5-9:available/1
        record update 0 #0 leader=0 start=5 done=0 5-9:available/1
        reply NONE

        summary 0 → reply epoch=1 leader=0 start=10 done=0
    """)


def test_after_enough_updates_the_whole_state_is_written() -> None:
    machine = play(
        """
        init 0 epoch=1 start=0 now=1
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        write 0 epoch=1 leader=0 start=0 done=1 1-1:acknowledged/1
        record update 0 #0 leader=0 start=0 done=1 1-1:acknowledged/1
        reply NONE

        write 0 epoch=1 leader=0 start=0 done=2 3-3:acknowledged/1
        record update 0 #0 leader=0 start=0 done=2 3-3:acknowledged/1
        reply NONE

        write 0 epoch=1 leader=0 start=-1 done=3 5-5:acknowledged/1 now=9
        record snapshot 0 #1 epoch=1 leader=0 start=0 done=3 1-1:acknowledged/1 3-3:acknowledged/1 5-5:acknowledged/1
        reply NONE

        write 0 epoch=1 leader=0 start=0 done=4 7-7:acknowledged/1
        record update 0 #1 leader=0 start=0 done=4 7-7:acknowledged/1
        reply NONE
        """,
        ShareState(updates_per_snapshot=2),
    )
    state = machine.states[SharePartitionKey("g", TOPIC, 0)]
    assert (state.created_ms, state.written_ms) == (1, 9)


def test_a_state_that_is_not_written_any_more_gets_a_snapshot_of_its_own() -> None:
    play("""
        init 0 epoch=1 start=0 now=10
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        init 1 epoch=1 start=0 now=20
        record snapshot 1 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        cold before=15 now=30
        record snapshot 0 #1 epoch=1 leader=0 start=0 done=0
        reply 1

        cold before=15 now=31 → reply 0
    """)


def test_deleted_states_are_unknown() -> None:
    play("""
        init 0 epoch=1 start=0
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        init 1 epoch=1 start=0
        record snapshot 1 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        delete 0
        record tombstone 0
        reply NONE

        delete 0 → reply NONE
        summary 0 → reply None
        read 0 leader=1 → reply INVALID_REQUEST
        write 0 epoch=1 leader=1 start=0 → reply INVALID_REQUEST

        drop
        record tombstone 1
        reply 1
    """)


@pytest.mark.parametrize("verb", ["init", "write", "read", "summary", "delete"])
def test_a_negative_partition_is_an_invalid_request(verb: str) -> None:
    play(f"{verb} -1 epoch=1 leader=1 start=0 → reply INVALID_REQUEST")


@pytest.mark.parametrize("verb", ["init", "write", "read", "summary", "delete"])
def test_a_partition_that_the_cluster_does_not_have_is_unknown(verb: str) -> None:
    play(f"""
        init 0 epoch=1 start=0
        record snapshot 0 #0 epoch=1 leader=0 start=0 done=0
        reply NONE

        {verb} 0 unknown epoch=1 leader=1 start=0 → reply UNKNOWN_TOPIC_OR_PARTITION
    """)


def test_the_log_is_needed_from_the_oldest_snapshot_on() -> None:
    machine = ShareState(updates_per_snapshot=1)
    lowest: list[int | None] = [machine.lowest_needed_offset]
    offset = 0
    for command in (
        "init 0 epoch=1 start=0",
        "init 1 epoch=1 start=0",
        "write 0 epoch=1 leader=0 start=1",
        "write 0 epoch=1 leader=0 start=2",
        "delete 1",
    ):
        for record in machine.decide(event_of(command), 0.0).records:
            machine.replay(record)
            machine.note_offset(record, offset)
            offset += 1
        lowest.append(machine.lowest_needed_offset)

    assert lowest == [None, 0, 0, 0, 1, 3]


writes = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(-1, 12),
        st.lists(
            st.builds(
                lambda first, size, state, count: PersisterStateBatch(first, first + size, state, count),
                st.integers(0, 15),
                st.integers(0, 5),
                st.sampled_from([RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED]),
                st.integers(0, 3),
            ),
            max_size=3,
        ),
    ),
    max_size=30,
)


@given(writes)
def test_a_state_is_the_same_whether_it_is_read_from_the_whole_log_or_from_its_last_snapshot(
    drawn: list[tuple[int, int, list[PersisterStateBatch]]],
) -> None:
    machine = ShareState(updates_per_snapshot=3)
    log: list[ShareStateRecord] = []
    events: list[Event] = [InitializeRequested(1, SharePartitionKey("g", TOPIC, index), 1, 0, 0) for index in (0, 1)]
    for index, start, batches in drawn:
        events.append(WriteRequested(1, SharePartitionKey("g", TOPIC, index), 1, 0, start, 0, batches, 0))
    for event in events:
        for record in machine.decide(event, 0.0).records:
            machine.replay(record)
            machine.note_offset(record, len(log))
            log.append(record)
        machine.check()

    lowest = machine.lowest_needed_offset
    assert lowest is not None
    whole, pruned = ShareState(), ShareState()
    for record in log:
        whole.replay(record)
    for record in log[lowest:]:
        pruned.replay(record)

    assert whole.states == pruned.states == machine.states
    assert {key_of(record) for record in log} == set(machine.states)
