"""A damaged follower of a real broker: copied again from the damage on, or kept if no replica has more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.replica_healing import ReplicaRepair
from ottla.coordination.replication.fetched import AppendBatches
from ottla.records.batch import iter_headers
from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log
from tests.broker.test_damage_reports import magic, record
from tests.broker.test_followed_partition import (
    House,
    files,
    leader,
    leaders_files,
    wire,
    write,
)
from tests.broker.test_replicated_partitions import OTHER, found, in_loop
from tests.broker.wire import Wire
from tests.storage.lost_files import cut, lose

__all__ = ["leader", "wire"]
RECORDS = 20


def bases(folder: Path) -> list[int]:
    return sorted(int(each.stem) for each in folder.glob("*.log"))


@pytest.fixture
def copied(leader: Broker, wire: Wire, tmp_path: Path) -> Path:
    """The folder of a copy that has all, closed."""
    house = House(tmp_path, leader)
    write(leader, *(b"%d" % number * 40 for number in range(RECORDS)))
    followed = house.follow(wire)
    house.until(lambda: followed.log.high_watermark == RECORDS)
    folder = followed.log.directory
    followed.log.flush()
    house.directory.checkpoint()
    house.close()
    assert len(bases(folder)) > 4
    return folder


@pytest.fixture
def again(copied: Path, leader: Broker) -> Iterator[House]:
    """The follower's broker before its restart: its directory is open, without logs."""
    house = House(copied.parent, leader)
    yield house
    house.close()


def lose_the_middle(folder: Path) -> int:
    """Remove a segment and return its base offset."""
    middle = bases(folder)[2]
    lose(folder, middle)
    return middle


def cut_the_middle(folder: Path) -> int:
    """A segment's file has nothing any more."""
    middle = bases(folder)[2]
    cut(folder, middle)
    return middle


def lose_the_first(folder: Path) -> int:
    lose(folder, 0)
    return 0


def flip(folder: Path) -> int:
    """Flip a bit in the header of a segment's first batch, as its first reader sees it."""
    middle = bases(folder)[2]
    path = folder / f"{middle:020d}.log"
    path.write_bytes(magic(bytearray(path.read_bytes()), 0, 0))
    return middle


def with_a_bit_flipped(data: bytes) -> bytes:
    """In the first batch."""
    _, header = next(iter_headers(data))
    return bytes(record(bytearray(data), 0, header.size_bytes))


def read_all(log: Log) -> None:
    """Let the broker detect damage that only readers notice."""
    for offset in range(log.start_offset, log.end_offset):
        try:
            log.read(offset, 1)
        except Exception:
            continue


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("damaged", [lose_the_middle, cut_the_middle, lose_the_first, flip])
def test_a_damaged_replica_is_truncated_at_the_damage_and_copied_again(
    damaged: Callable[[Path], int],
    copied: Path,
    leader: Broker,
    wire: Wire,
    again: House,
    caplog: pytest.LogCaptureFixture,
) -> None:
    begins = damaged(copied)
    caplog.set_level(logging.WARNING)
    followed = again.follow(wire)
    if followed.repaired_damage is None:
        again.fetcher.remove(followed.place)
        read_all(followed.log)
        followed = again.follow(wire)
    assert [each.offset for each in followed.log.known_damages()] == [begins]
    again.until(lambda: followed.log.high_watermark == RECORDS)
    assert files(copied) == leaders_files(leader)
    messages = [each.getMessage() for each in caplog.records if "is truncated" in each.getMessage()]
    assert len(messages) == 1
    assert messages[0].startswith(
        f"t-0 is truncated from its end at {RECORDS} to offset {begins}, and the damaged records are fetched from broker 1"
    )
    assert not list(followed.log.known_damages())


def test_a_replica_in_the_isr_is_not_truncated(copied: Path, leader: Broker, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed = again.follow(wire, in_sync=True)
    write(leader, b"more")
    again.until(lambda: followed.log.end_offset == RECORDS + 1)
    assert len(list(followed.log.known_damages())) == 1
    followed.in_sync = False
    followed.next_fetch()
    followed.in_sync = True
    followed.handle_outcome(AppendBatches(memoryview((copied / f"{0:020d}.log").read_bytes()), RECORDS, 0))
    assert followed.log.end_offset == RECORDS + 1
    assert followed.update_isr(in_sync=False)
    again.fetcher.add(followed)
    again.until(lambda: not list(followed.log.known_damages()) and followed.log.end_offset == RECORDS + 1)
    assert files(copied) == leaders_files(leader)


def test_records_that_the_leader_cannot_read_either_are_kept_and_the_replica_continues_after_them(
    copied: Path, leader: Broker, wire: Wire, again: House, caplog: pytest.LogCaptureFixture
) -> None:
    begins = lose_the_middle(copied)
    in_loop(leader, believe_nothing)
    flip(folder_of(leader))
    followed = again.follow(wire)
    before = files(copied)
    again.until(lambda: followed.repaired_damage is None)
    write(leader, b"more")
    again.until(lambda: followed.log.end_offset == RECORDS + 1)
    assert {name: data[: len(before[name])] for name, data in files(copied).items() if name in before} == before
    assert f"t-0 is not repaired: its leader, broker 1, cannot read offset {begins} either" in caplog.text


def test_a_batch_damaged_in_transit_causes_no_truncation(copied: Path, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed = again.follow(wire)
    again.fetcher.remove(followed.place)
    followed.next_fetch()
    followed.handle_outcome(
        AppendBatches(memoryview(with_a_bit_flipped((copied / f"{0:020d}.log").read_bytes())), RECORDS, 0)
    )
    assert (followed.log.end_offset, len(list(followed.log.known_damages()))) == (RECORDS, 1)


def test_records_that_the_leader_has_deleted_are_not_missed(
    copied: Path, leader: Broker, wire: Wire, again: House
) -> None:
    begins = lose_the_middle(copied)
    behind = next(each for each in bases(copied) if each > begins)

    def delete_up_to(node: BrokerNode) -> None:
        found(node).log.advance_start(behind)
        found(node).log.retain(0)

    in_loop(leader, delete_up_to)
    followed = again.follow(wire)
    followed.log.advance_high_watermark(RECORDS)
    again.until(lambda: followed.log.start_offset == behind)
    assert followed.log.end_offset == RECORDS
    write(leader, b"more")
    again.until(lambda: followed.log.high_watermark == RECORDS + 1)


def test_a_replica_is_reset_if_the_leaders_log_starts_inside_the_damage(
    copied: Path, leader: Broker, wire: Wire, again: House
) -> None:
    begins = lose_the_middle(copied)

    def delete_up_to(node: BrokerNode) -> None:
        found(node).log.advance_start(begins + 1)

    in_loop(leader, delete_up_to)
    followed = again.follow(wire)
    again.until(lambda: (followed.log.start_offset, followed.log.high_watermark) == (begins + 1, RECORDS))
    assert not list(followed.log.known_damages())


def test_other_replicas_are_queried_once_until_there_is_a_new_one() -> None:
    healing, hole = ReplicaRepair(), Damage(Path("t-0"), 0, 1, 5, 7, "a bit flipped")
    assert healing.record_attempt(hole, [OTHER], 0.0)
    assert not healing.record_attempt(hole, [OTHER], 1.0)
    assert healing.record_attempt(hole, [OTHER, 3], 2.0)
    assert not healing.record_attempt(hole, [3], 3.0)
    healing.complete()
    assert healing.record_attempt(hole, [OTHER], 4.0)


def test_a_record_that_one_leader_lacks_is_fetched_from_the_next_leader(copied: Path, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed, healing = again.follow(wire), ReplicaRepair()
    (hole,) = followed.log.known_damages()
    healing.keep_damage(hole, OTHER)
    assert (healing.find_damage(followed.log, OTHER), healing.find_damage(followed.log, 3)) == (None, hole)


def believe_nothing(node: BrokerNode) -> None:
    """Read what was written in this run as if it had been found."""
    for segment in found(node).log.segments:
        segment.distrust()


def folder_of(broker: Broker) -> Path:
    seen: list[Path] = []
    in_loop(broker, lambda node: seen.append(found(node).log.directory))
    return seen[0]
