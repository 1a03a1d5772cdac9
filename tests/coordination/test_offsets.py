"""Committed offsets, step by step."""

from __future__ import annotations

from ottla.coordination.offsets.events import OffsetsCommitted
from ottla.coordination.offsets.offsets import Offsets
from ottla.coordination.offsets.records import OffsetCommitKey, OffsetRecord
from ottla.model import OffsetAndMetadata, TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def commit(machine: Offsets, group: str, **offsets: int) -> None:
    partitions = {"first": FIRST, "second": SECOND}
    wanted = {partitions[name]: OffsetAndMetadata(offset, "why") for name, offset in offsets.items()}
    decision = machine.decide(OffsetsCommitted(1, group, wanted, 7), 0.0)
    assert [reply.message for reply in decision.replies] == [None]
    for record in decision.records:
        machine.replay(record)
    machine.check()


def test_the_last_commit_counts() -> None:
    machine = Offsets()
    commit(machine, "g", first=5, second=6)
    commit(machine, "g", first=9)
    assert machine.fetch("g", [FIRST, SECOND]) == {
        FIRST: OffsetAndMetadata(9, "why"),
        SECOND: OffsetAndMetadata(6, "why"),
    }


def test_groups_do_not_see_each_other() -> None:
    machine = Offsets()
    commit(machine, "g", first=5)
    assert machine.fetch("h", [FIRST]) == {}
    assert machine.fetch("g", [SECOND]) == {}
    assert machine.fetch("g", None) == {FIRST: OffsetAndMetadata(5, "why")}


def test_a_tombstone_takes_the_offset_and_the_last_one_the_group() -> None:
    machine = Offsets()
    commit(machine, "g", first=5, second=6)
    for partition in (FIRST, SECOND):
        machine.replay(OffsetRecord(OffsetCommitKey("g", *partition), None))
        machine.check()
    assert machine.groups == {}


def test_deciding_changes_nothing() -> None:
    machine = Offsets()
    machine.decide(OffsetsCommitted(1, "g", {FIRST: OffsetAndMetadata(1)}, 7), 0.0)
    assert machine.groups == {}
