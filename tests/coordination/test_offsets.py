"""Committed offsets, as transcripts."""

from __future__ import annotations

from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.events import OffsetsCommitted, TopicsDeleted
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.offsets.records import OffsetRecord
from ottla.model import OffsetAndMetadata, TopicPartition
from tests.coordination.transcript import run

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def event_of(command: str) -> Event:
    """`commit GROUP topic-partition=offset …` or `delete TOPIC[,TOPIC]`."""
    verb, name, *words = command.split()
    if verb == "delete":
        return TopicsDeleted(1, name.split(","))
    offsets = {}
    for word in words:
        partition, offset = word.split("=")
        topic, _, index = partition.rpartition("-")
        offsets[TopicPartition(topic, int(index))] = OffsetAndMetadata(int(offset), "why", 3)
    return OffsetsCommitted(1, name, offsets, 7)


def show_record(record: OffsetRecord) -> str:
    committed = "forgotten" if record.value is None else f"at {record.value.offset}"
    return f"{record.key.group} {record.partition} {committed}"


def play(text: str) -> Shard:
    machine = Shard(GroupConfig())
    run(machine, text, event_of, show_record, lambda message: [str(int(message))])
    return machine


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, "why", 3)


def test_the_last_commit_counts() -> None:
    machine = play("""
        commit g t-0=5 t-1=6
        record g t-0 at 5
        record g t-1 at 6
        reply 0

        commit g t-0=9
        record g t-0 at 9
        reply 0
    """)
    assert machine.offsets.fetch("g", [FIRST, SECOND]) == {FIRST: at(9), SECOND: at(6)}


def test_an_offset_may_be_decreased() -> None:
    machine = play("""
        commit g t-0=5
        record g t-0 at 5
        reply 0

        commit g t-0=2
        record g t-0 at 2
        reply 0
    """)
    assert machine.offsets.fetch("g", None) == {FIRST: at(2)}


def test_groups_do_not_see_each_other() -> None:
    machine = play("""
        commit g t-0=5
        record g t-0 at 5
        reply 0
    """)
    assert machine.offsets.fetch("h", [FIRST]) == {}
    assert machine.offsets.fetch("h", None) == {}
    assert machine.offsets.fetch("g", [SECOND]) == {}
    assert machine.offsets.fetch("g", None) == {FIRST: at(5)}


def test_an_empty_commit_writes_nothing() -> None:
    machine = play("""
        commit g → reply 0
    """)
    assert machine.offsets.groups == {}


def test_offsets_of_a_deleted_topic_are_removed_and_their_group_expires_later() -> None:
    machine = play("""
        commit g t-0=5 u-0=6
        record g t-0 at 5
        record g u-0 at 6
        reply 0

        commit h t-1=7
        record h t-1 at 7
        reply 0

        delete t,w
        record g t-0 forgotten
        record h t-1 forgotten
        reply 2

        delete t → reply 0
    """)
    assert machine.offsets.fetch("g", None) == {TopicPartition("u", 0): at(6)}
    assert machine.find("h") is not None


def test_a_tombstone_for_an_unknown_offset_changes_nothing() -> None:
    machine = Shard(GroupConfig())
    machine.replay(OffsetRecord.tombstone("g", FIRST))
    machine.check()
    assert machine.offsets.groups == {}


def test_deciding_changes_nothing() -> None:
    machine = Shard(GroupConfig())
    machine.decide(event_of("commit g t-0=1"), 0.0)
    assert machine.offsets.groups == {}


def test_a_machine_built_from_its_log_is_the_same_machine() -> None:
    machine, again = Shard(GroupConfig()), Shard(GroupConfig())
    for command in ("commit g t-0=1 t-1=2", "commit h u-0=3", "delete t", "commit g t-1=4"):
        for record in machine.decide(event_of(command), 0.0).records:
            machine.replay(record)
            again.replay(record)
    again.check()
    assert again.offsets.groups == machine.offsets.groups
