"""The preferred read replica of a consumer: one in its rack that has the requested offset, else none."""

from __future__ import annotations

from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.leader import Leader
from ottla.coordination.replication.read_replica import replica_to_read

RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}
NOW = 100.0


def leading(**ends: int) -> Leader:
    """Return broker 1 as the leader up to offset 10. Each named follower has all below its end and is in the ISR."""
    has = {int(name[1:]): end for name, end in ends.items()}
    assignment = ReplicaAssignment(1, 0, 0, (1, 2, 3, 4), frozenset((1, *has)))
    leader = Leader(1, assignment, 10, 0, NOW)
    for id_, end in has.items():
        assert leader.fetch(id_, end, 5, NOW, 3)
    return leader


def find_preferred(leader: Leader, rack: str, offset: int = 5) -> int | None:
    return replica_to_read(leader, RACKS, rack, offset, NOW + 1)


def test_a_consumer_without_a_rack_or_in_the_leaders_reads_from_the_leader() -> None:
    leader = leading(_2=10)
    assert [find_preferred(leader, rack) for rack in ("", "a", "nowhere", "c")] == [None] * 4


def test_the_most_advanced_replica_in_the_rack_is_preferred() -> None:
    assert find_preferred(leading(_2=10, _4=10), "b") == 2
    assert find_preferred(leading(_2=8, _3=9), "b") == 3
    assert find_preferred(leading(_2=10, _3=9), "b") == 2
    assert find_preferred(leading(_2=10, _3=10), "b") == 3  # all else being equal the higher number, so that it stays


def test_of_equal_replicas_the_one_caught_up_later_is_preferred() -> None:
    leader = leading(_2=10, _3=10)
    leader.append(12)
    assert leader.fetch(2, 11, 5, NOW, 3)
    leader.fetch(3, 12, 5, NOW, 3)
    leader.append(13)
    leader.fetch(2, 12, 5, NOW + 0.5, 3)
    assert find_preferred(leader, "b") == 3


def test_a_replica_without_the_offset_or_out_of_sync_is_not_chosen() -> None:
    leader = leading(_2=8)
    assert [find_preferred(leader, "b", offset) for offset in (2, 3, 8, 9)] == [None, 2, 2, None]
    leader.assign(ReplicaAssignment(1, 0, 1, (1, 2, 3, 4), frozenset((1,))), 10, NOW)
    assert find_preferred(leader, "b", 5) is None


def test_every_online_replica_has_records_from_the_low_watermark_on() -> None:
    leader = leading(_2=10, _3=10)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5, 3: 5})) == 3
    leader.fetch(2, 10, 5, NOW, 7)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5})) == 7
    leader.fetch(3, 10, 5, NOW, 9)
    assert leader.low_watermark(7, LiveBrokers({1: 5, 2: 5, 3: 5})) == 7
