"""A copy that is damaged, of a leader that is a real broker: copied anew from the damage on, or left as it is where nobody has more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.broker.embedded import Broker
from ottla.broker.node import BrokerNode
from ottla.broker.replication.healing import Healing
from ottla.coordination.replication.fetched import Append
from ottla.records.batch import iter_headers
from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log
from tests.broker.test_damage_told import magic, record
from tests.broker.test_followed_partition import (
    House,
    files,
    leader,
    leaders_files,
    wire,
    write,
)
from tests.broker.test_led_partitions import OTHER, found, in_loop
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
    """The follower's broker, before it is started anew: its directory is open, and no log of it."""
    house = House(copied.parent, leader)
    yield house
    house.close()


def lose_the_middle(folder: Path) -> int:
    """A segment has gone; where it began."""
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
    """A bit in the header of a segment's first batch is another, as the first who reads there sees."""
    middle = bases(folder)[2]
    path = folder / f"{middle:020d}.log"
    path.write_bytes(magic(bytearray(path.read_bytes()), 0, 0))
    return middle


def with_a_bit_flipped(data: bytes) -> bytes:
    """In the first batch."""
    _, header = next(iter_headers(data))
    return bytes(record(bytearray(data), 0, header.size_bytes))


def read_all(log: Log) -> None:
    """Come to know of what only its readers notice."""
    for offset in range(log.start_offset, log.end_offset):
        try:
            log.read(offset, 1)
        except Exception:
            continue


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("damaged", [lose_the_middle, cut_the_middle, lose_the_first, flip])
def test_a_damaged_copy_is_cut_where_the_damage_begins_and_copied_anew(
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
    if followed.heals is None:
        again.fetcher.remove(followed.place)
        read_all(followed.log)
        followed = again.follow(wire)
    assert [each.offset for each in followed.log.known_damages()] == [begins]
    again.until(lambda: followed.log.high_watermark == RECORDS)
    assert files(copied) == leaders_files(leader)
    told = [each.getMessage() for each in caplog.records if "is cut at" in each.getMessage()]
    assert len(told) == 1
    assert told[0].startswith(
        f"t-0 is cut at offset {begins}, where it ended at {RECORDS}, and copied from there on from broker 1"
    )
    assert not list(followed.log.known_damages())


def test_nothing_is_cut_while_the_copy_is_counted_on(copied: Path, leader: Broker, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed = again.follow(wire, in_sync=True)
    write(leader, b"more")
    again.until(lambda: followed.log.end_offset == RECORDS + 1)
    assert len(list(followed.log.known_damages())) == 1
    followed.in_sync = False
    followed.next_fetch()
    followed.in_sync = True
    followed.take(Append(memoryview((copied / f"{0:020d}.log").read_bytes()), RECORDS, 0))
    assert followed.log.end_offset == RECORDS + 1
    assert followed.see(in_sync=False)
    again.fetcher.add(followed)
    again.until(lambda: not list(followed.log.known_damages()) and followed.log.end_offset == RECORDS + 1)
    assert files(copied) == leaders_files(leader)


def test_what_the_leader_cannot_read_either_is_kept_and_the_copy_goes_on_behind_it(
    copied: Path, leader: Broker, wire: Wire, again: House, caplog: pytest.LogCaptureFixture
) -> None:
    begins = lose_the_middle(copied)
    in_loop(leader, believe_nothing)
    flip(folder_of(leader))
    followed = again.follow(wire)
    before = files(copied)
    again.until(lambda: followed.heals is None)
    write(leader, b"more")
    again.until(lambda: followed.log.end_offset == RECORDS + 1)
    assert {name: data[: len(before[name])] for name, data in files(copied).items() if name in before} == before
    assert f"t-0 stays as it is: broker 1, which leads, cannot read offset {begins} either" in caplog.text


def test_nothing_is_cut_for_what_came_damaged(copied: Path, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed = again.follow(wire)
    again.fetcher.remove(followed.place)
    followed.next_fetch()
    followed.take(Append(memoryview(with_a_bit_flipped((copied / f"{0:020d}.log").read_bytes())), RECORDS, 0))
    assert (followed.log.end_offset, len(list(followed.log.known_damages()))) == (RECORDS, 1)


def test_what_the_leader_has_deleted_is_not_missed(copied: Path, leader: Broker, wire: Wire, again: House) -> None:
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


def test_a_copy_begins_anew_where_its_leader_begins_in_what_is_damaged(
    copied: Path, leader: Broker, wire: Wire, again: House
) -> None:
    begins = lose_the_middle(copied)

    def delete_up_to(node: BrokerNode) -> None:
        found(node).log.advance_start(begins + 1)

    in_loop(leader, delete_up_to)
    followed = again.follow(wire)
    again.until(lambda: (followed.log.start_offset, followed.log.high_watermark) == (begins + 1, RECORDS))
    assert not list(followed.log.known_damages())


def test_others_are_asked_once_until_there_is_somebody_new_among_them() -> None:
    healing, hole = Healing(), Damage(Path("t-0"), 0, 1, 5, 7, "a bit flipped")
    assert healing.ask(hole, [OTHER], 0.0)
    assert not healing.ask(hole, [OTHER], 1.0)
    assert healing.ask(hole, [OTHER, 3], 2.0)
    assert not healing.ask(hole, [3], 3.0)
    healing.healed()
    assert healing.ask(hole, [OTHER], 4.0)


def test_what_one_leader_has_not_another_may_have(copied: Path, wire: Wire, again: House) -> None:
    lose_the_middle(copied)
    followed, healing = again.follow(wire), Healing()
    (hole,) = followed.log.known_damages()
    healing.despair(hole, OTHER)
    assert (healing.damage(followed.log, OTHER), healing.damage(followed.log, 3)) == (None, hole)


def believe_nothing(node: BrokerNode) -> None:
    """Read what was written in this run as if it had been found."""
    for segment in found(node).log.segments:
        segment.distrust()


def folder_of(broker: Broker) -> Path:
    seen: list[Path] = []
    in_loop(broker, lambda node: seen.append(found(node).log.directory))
    return seen[0]
