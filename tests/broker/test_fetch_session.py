"""Fetch sessions and their cache, without sockets, logs or clocks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.replica_manager.fetch_session import FetchedPartition, FetchSession, make_partition, next_epoch
from ottla.broker.replica_manager.fetch_session_cache import EVICTION_SECONDS, FetchSessionCache
from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic, PartitionData


def cache(slots: int) -> FetchSessionCache:
    return FetchSessionCache(slots, itertools.count(1).__next__)


def filled(cache: FetchSessionCache, size: int, now: float, *, privileged: bool = False) -> FetchSession | None:
    """Return a session with so many partitions, if there is a free slot."""
    session = cache.create(size, uses_ids=False, privileged=privileged, now=now)
    if session is not None:
        session.update([reads(*dict.fromkeys(range(size), 0).items())], [])
    cache.check()
    return session


def reads(*offsets: tuple[int, int]) -> FetchTopic:
    """The part of a request for topic t: partitions and offsets."""
    return FetchTopic("t", partitions=[FetchPartition(index, fetch_offset=offset) for index, offset in offsets])


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (INT32_MAX - 1, INT32_MAX), (INT32_MAX, 1)])
def test_session_epochs_wrap_around_to_1(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


def test_a_new_session_replaces_one_unused_for_two_minutes() -> None:
    full = cache(1)
    old = filled(full, 5, now=0)
    assert filled(full, 1, now=EVICTION_SECONDS) is None
    assert filled(full, 1, now=EVICTION_SECONDS + 1) is not None
    assert old is not None
    assert full.get(old.session_id) is None


def test_an_old_session_can_be_replaced_by_a_larger_one_even_if_it_is_used() -> None:
    full = cache(1)
    old = filled(full, 5, now=0)
    assert old is not None
    full.touch(old, EVICTION_SECONDS)
    assert filled(full, 6, now=EVICTION_SECONDS) is None
    assert filled(full, 5, now=EVICTION_SECONDS + 1) is None
    assert filled(full, 6, now=EVICTION_SECONDS + 1) is not None


def test_a_session_of_a_follower_replaces_a_recent_one_of_a_consumer_and_not_vice_versa() -> None:
    full = cache(1)
    filled(full, 100, now=0)
    assert filled(full, 1, now=1, privileged=True) is not None
    assert filled(full, 100, now=2) is None


def test_without_slots_there_are_no_sessions() -> None:
    assert filled(cache(0), 1, now=0) is None


def test_a_closed_session_watches_nothing() -> None:
    sessions, source = cache(1), Source()
    session = filled(sessions, 1, now=0)
    assert session is not None
    (partition,) = session.partitions.values()
    partition.watch(source)
    sessions.remove(session.session_id)
    partition.watch(source)
    assert not source.watchers
    assert len(sessions) == 0


def test_a_forgotten_partition_is_neither_watched_nor_pending() -> None:
    session, source = FetchSession(1, uses_ids=False, privileged=False, now=0), Source()
    session.update([reads((0, 0), (1, 0))], [])
    session.partitions["t", 0].watch(source)
    session.update([], [ForgottenTopic("t", partitions=[0, 7])])
    session.check()
    assert list(session.partitions) == [("t", 1)]
    assert not source.watchers
    assert [partition.wanted.partition for partition in session.news] == [1]


class Source:
    """A source of changes that a session watches."""

    def __init__(self) -> None:
        self.watchers: dict[FetchedPartition, None] = {}
        self.reported: list[tuple[int, float]] = []

    def record_fetch(self, follower: int, moment: float) -> None:
        self.reported.append((follower, moment))


class Shop:
    """A model: partitions with an end, a session that reads them, and a client that records the responses."""

    def __init__(self, count: int) -> None:
        self.ends = [0] * count
        self.failing = [False] * count
        self.session = FetchSession(1, uses_ids=False, privileged=False, now=0)
        self.known = [-1] * count
        self.offsets = [0] * count
        self.session.update([reads(*enumerate(self.offsets))], [])

    def append(self, index: int) -> None:
        self.ends[index] += 1
        self.session.news[self.session.partitions["t", index]] = None

    def fail(self, index: int) -> None:
        self.failing[index] = not self.failing[index]
        self.session.news[self.session.partitions["t", index]] = None

    def fetch(self, room: int) -> list[int]:
        """One fetch of at most `room` partitions with records; the client then advances."""
        self.session.update([reads(*((i, o) for i, o in enumerate(self.offsets) if o > 0))], [])
        found, reported = [], []
        for partition in self.session.news:
            index, offset = partition.wanted.partition, partition.wanted.fetch_offset
            has = offset < self.ends[index] and room > 0 and not self.failing[index]
            room -= has
            code = 3 if self.failing[index] else 0
            data = PartitionData(index, code, high_watermark=self.ends[index], records=b"x" if has else b"")
            found.append((partition, data))
            if partition.differs(data):
                reported.append(index)
                self.known[index] = self.ends[index]
                self.offsets[index] += has
        self.session.handle_response(found)
        self.session.check()
        return reported


@given(st.lists(st.tuples(st.sampled_from(["append", "fail", "fetch"]), st.integers(0, 3)), max_size=40))
def test_a_session_returns_everything_that_a_full_fetch_would(steps: list[tuple[str, int]]) -> None:
    shop = Shop(4)
    for verb, number in steps:
        if verb == "fetch":
            shop.fetch(number)
        else:
            getattr(shop, verb)(number)
    shop.failing = [False] * 4
    for _ in range(200):
        shop.fetch(2)
    assert shop.known == shop.offsets == shop.ends


def test_a_partition_with_records_is_last_in_the_next_response() -> None:
    shop = Shop(3)
    for index in (0, 1, 2) * 5:
        shop.append(index)
    got = [index for _ in range(6) for index in shop.fetch(1)[:1]]
    shop.fetch(0)
    assert sorted(shop.offsets) == [2, 2, 2], got


def test_an_unchanged_partition_is_not_examined() -> None:
    shop = Shop(1000)
    shop.fetch(0)
    shop.fetch(0)
    shop.append(7)
    assert [partition.wanted.partition for partition in shop.session.news] == [7]


def test_an_error_is_repeated_and_the_partition_is_returned_again_after_it() -> None:
    shop = Shop(1)
    shop.fail(0)
    assert [shop.fetch(1), shop.fetch(1)] == [[0], [0]]
    shop.fail(0)
    assert [shop.fetch(1), shop.fetch(1)] == [[0], []]


def test_the_name_of_a_partition_by_id_is_looked_up() -> None:
    assert make_partition(FetchTopic("ignored"), FetchPartition(), uses_ids=True).name is None


def following(count: int) -> tuple[FetchSession, list[FetchedPartition], list[Source]]:
    """Return a session of broker 7 that has everything, has received it, and fetched last at 5."""
    session = FetchSession(1, uses_ids=False, privileged=True, now=0)
    read = [make_partition(FetchTopic("t"), FetchPartition(index), uses_ids=False) for index in range(count)]
    session.adopt((("t", index), each) for index, each in enumerate(read))
    session.news = dict.fromkeys(read)
    led = [Source() for _ in read]
    for each, source in zip(read, led, strict=True):
        each.watch(source)
    session.handle_request(7, 70, 1)
    session.handle_response((each, PartitionData(index, high_watermark=0)) for index, each in enumerate(read))
    session.handle_request(7, 70, 5)
    return session, read, led


def test_only_changed_partitions_of_a_follower_are_examined() -> None:
    session, read, _ = following(1000)
    assert not session.news
    session.mark_changed(read[7])
    assert list(session.news) == [read[7]]


def test_partitions_not_named_by_a_follower_were_caught_up_at_its_last_fetch() -> None:
    session, read, led = following(2)
    session.mark_changed(read[0])
    session.handle_request(7, 70, 6)
    session.mark_changed(read[0])
    session.end()
    assert [each.reported for each in led] == [[(7, 5)], [(7, 6)]], "of what has news it has to say so itself"


def test_a_partition_whose_follower_state_is_missing_is_examined_again() -> None:
    session, read, _ = following(1)
    session.mark_changed(read[0])
    read[0].lacks = True
    session.handle_response([(read[0], PartitionData(0, high_watermark=0))])
    assert session.news


def test_a_restarted_follower_reports_all_of_its_offsets_again() -> None:
    session, read, _ = following(3)
    session.handle_request(7, 71, 6)
    assert list(session.news) == read
