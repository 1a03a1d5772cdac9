"""Which copy a consumer is sent to: one in its rack that has what it wants, else none."""

from __future__ import annotations

from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.leader import Leader
from ottla.coordination.replication.read_replica import replica_to_read

RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}
NOW = 100.0


def leading(**ends: int) -> Leader:
    """Broker 1 leads up to offset 10; who is named has all up to there, and is in sync."""
    has = {int(name[1:]): end for name, end in ends.items()}
    assignment = Assignment(1, 0, 0, (1, 2, 3, 4), frozenset((1, *has)))
    leader = Leader(1, assignment, 10, 0, NOW)
    for id_, end in has.items():
        assert leader.fetch(id_, end, 5, NOW, 3)
    return leader


def sent_to(leader: Leader, rack: str, offset: int = 5) -> int | None:
    return replica_to_read(leader, RACKS, rack, offset, NOW + 1)


def test_who_says_no_rack_or_the_leaders_reads_from_the_leader() -> None:
    leader = leading(_2=10)
    assert [sent_to(leader, rack) for rack in ("", "a", "nowhere", "c")] == [None] * 4


def test_a_copy_in_its_rack_is_preferred_and_of_several_who_has_most() -> None:
    assert sent_to(leading(_2=10, _4=10), "b") == 2
    assert sent_to(leading(_2=8, _3=9), "b") == 3
    assert sent_to(leading(_2=10, _3=9), "b") == 2
    assert sent_to(leading(_2=10, _3=10), "b") == 3  # all else being equal the higher number, so that it stays


def test_who_was_level_later_is_preferred_where_both_have_as_much() -> None:
    leader = leading(_2=10, _3=10)
    leader.append(12)
    assert leader.fetch(2, 11, 5, NOW, 3)
    leader.fetch(3, 12, 5, NOW, 3)
    leader.append(13)
    leader.fetch(2, 12, 5, NOW + 0.5, 3)
    assert sent_to(leader, "b") == 3


def test_a_copy_that_lacks_what_is_wanted_or_is_not_in_sync_is_nobodys_choice() -> None:
    leader = leading(_2=8)
    assert [sent_to(leader, "b", offset) for offset in (2, 3, 8, 9)] == [None, 2, 2, None]
    leader.assign(Assignment(1, 0, 1, (1, 2, 3, 4), frozenset((1,))), 10, NOW)
    assert sent_to(leader, "b", 5) is None


def test_everybody_who_is_there_has_something_from_the_low_watermark_on() -> None:
    leader = leading(_2=10, _3=10)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5, 3: 5})) == 3
    leader.fetch(2, 10, 5, NOW, 7)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5})) == 7
    leader.fetch(3, 10, 5, NOW, 9)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5, 3: 5})) == 7
