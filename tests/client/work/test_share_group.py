"""Workers of a share group against a broker, with threads and in asyncio."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla import Admin, Backoff, ConfigError, NewTopic
from ottla.client.admin import ConfigResource
from ottla.client.work.dead_letters import read_dead_letter
from ottla.errors import ErrorCode, KafkaError
from tests.client.conftest import eventually, fresh_name
from tests.client.process.running import records_of
from tests.client.work.running import WAYS, fill, running, spend
from tests.client.work.test_kills import lines_of, victim
from tests.client.work.test_processes import last_pid, pids_of, wait_at_first

each_way = pytest.mark.parametrize("way", WAYS)
SOON = Backoff(2, base=0.01, cap=0.01)
LOCK_MS = 1000
DELIVERIES = 10
"""The delivery limit of the groups in these tests."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with short locks."""
    settings: dict[str, Any] = {
        "group_share_min_record_lock_duration_ms": LOCK_MS,
        "group_share_record_lock_duration_ms": LOCK_MS,
        "group_share_delivery_count_limit": DELIVERIES,
    }
    with ottla.Broker(**settings) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of one partition, whose group of the same name reads from the start."""
    name = fresh_name()
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 1)])
        group = ConfigResource("group", name)
        admin.alter_configs({group: {"share.auto.offset.reset": "earliest"}})
    return name


def value_of(record: ottla.ConsumerRecord) -> str:
    return (record.value or b"").decode()


def unfinished(servers: str, group: str) -> int | None:
    """Return the lag of a share group: the records that are not acknowledged for good. None before there is a group."""
    with Admin(bootstrap_servers=servers) as admin:
        try:
            found = admin.list_share_group_offsets(group)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return None
        return sum(each.lag or 0 for each in found.values()) if found else None


def test_a_killed_process_keeps_the_lock_and_the_record_is_retried(servers: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "seen"
    fill(servers, topic, ["1"])
    settings: dict[str, Any] = {"share": True, "concurrency": 2, "processes": 2, "retries": SOON}
    with running("threads", servers, topic, partial(wait_at_first, path), **settings):
        eventually(lambda: len(lines_of(path)) == 1)
        os.kill(last_pid(path), signal.SIGKILL)
        eventually(lambda: unfinished(servers, topic) == 0)
    assert len(set(pids_of(path))) == 2


@each_way
def test_several_workers_share_one_partition_and_process_each_record_once(servers: str, topic: str, way: str) -> None:
    seen: dict[str, list[str]] = {"one": [], "two": []}

    def work(name: str, other: str) -> Any:
        def append(record: ottla.ConsumerRecord) -> None:
            seen[name].append(value_of(record))
            eventually(lambda: seen[other])

        return append

    values = [str(number) for number in range(200)]
    with (
        running(way, servers, topic, work("one", "two"), share=True),
        running(way, servers, topic, work("two", "one"), share=True),
    ):
        fill(servers, topic, values)
        eventually(lambda: sum(map(len, seen.values())) >= 200)
    assert sorted(seen["one"] + seen["two"]) == sorted(values)
    assert unfinished(servers, topic) == 0


@each_way
def test_a_failed_record_is_retried_and_becomes_a_dead_letter(servers: str, topic: str, way: str) -> None:
    calls: Counter[str] = Counter()

    def work(record: ottla.ConsumerRecord) -> None:
        calls[value_of(record)] += 1
        if value_of(record) == "bad" or calls["once"] == 1:
            raise ValueError("not now")

    fill(servers, topic, ["once", "bad", "good"])
    with running(way, servers, topic, work, share=True, retries=SOON, dead_letters=f"{topic}-dead", concurrency=1):
        eventually(lambda: unfinished(servers, topic) == 0)
    [letter] = records_of(servers, f"{topic}-dead")
    assert calls == {"once": 2, "bad": 3, "good": 1}
    assert (letter.value, read_dead_letter(letter.headers).attempts) == (b"bad", 3)


@each_way
def test_without_a_topic_for_dead_letters_the_record_is_rejected(servers: str, topic: str, way: str) -> None:
    calls: list[str] = []

    def work(record: ottla.ConsumerRecord) -> None:
        calls.append(value_of(record))
        if value_of(record) == "bad":
            raise ValueError("never")

    fill(servers, topic, ["bad", "good"])
    with running(way, servers, topic, work, share=True, retries=SOON):
        eventually(lambda: unfinished(servers, topic) == 0)
    assert Counter(calls) == {"bad": 3, "good": 1}


@each_way
def test_locks_of_long_calls_are_renewed_while_others_are_delivered(servers: str, topic: str, way: str) -> None:
    calls: list[str] = []
    go_on = threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        calls.append(value_of(record))
        if value_of(record) == "long":
            go_on.wait(60)

    fill(servers, topic, ["long"])
    with running(way, servers, topic, work, share=True), running(way, servers, topic, work, share=True):
        for number in range(30):  # three times as long as a lock
            spend(LOCK_MS / 10_000)
            fill(servers, topic, [str(number)])
        eventually(lambda: len(calls) >= 31)
        go_on.set()
        eventually(lambda: unfinished(servers, topic) == 0)
    assert Counter(calls) == Counter(["long", *map(str, range(30))])


@each_way
def test_a_stop_releases_what_was_not_finished_without_counting_the_delivery(
    servers: str, topic: str, way: str
) -> None:
    def fail(record: ottla.ConsumerRecord) -> None:
        calls.append(value_of(record))
        raise ConnectionError("stopped")

    calls: list[str] = []
    fill(servers, topic, ["a", "b"])
    with running(way, servers, topic, fail, share=True, retries=Backoff(5, base=60.0)):
        eventually(lambda: len(calls) == 2)
    again: list[tuple[str, int | None]] = []
    with running(
        way, servers, topic, lambda record: again.append((value_of(record), record.delivery_count)), share=True
    ):
        eventually(lambda: unfinished(servers, topic) == 0)
    assert sorted(again) == [("a", 1), ("b", 1)]


@each_way
def test_a_record_that_cannot_be_deserialized_becomes_a_dead_letter(servers: str, topic: str, way: str) -> None:
    seen: list[int] = []
    fill(servers, topic, ["1", "x", "2"])
    settings: dict[str, Any] = {"value_deserializer": int, "dead_letters": f"{topic}-dead", "share": True}
    with running(way, servers, topic, lambda record: seen.append(record.value), **settings):
        eventually(lambda: unfinished(servers, topic) == 0)
    [letter] = records_of(servers, f"{topic}-dead")
    assert (letter.value, sorted(seen)) == (b"x", [1, 2])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.long)])
def test_kills_lose_no_record(servers: str, topic: str, tmp_path: Path, way: str, kills: int) -> None:
    path = tmp_path / "seen"
    values = [str(number) for number in range(kills * 100)]
    fill(servers, topic, values)
    for _ in range(kills):
        before = len(lines_of(path))
        with victim(servers, topic, path, way, "share"):
            wanted = before + random.randrange(20, 100)
            eventually(lambda wanted=wanted: len(lines_of(path)) >= wanted)  # type: ignore[misc]
    with victim(servers, topic, path, way, "share") as worker:
        eventually(lambda: unfinished(servers, topic) == 0, timeout=300)
        worker.send_signal(signal.SIGTERM)
        worker.wait()
    seen = Counter(lines_of(path))
    print(f"{kills} kills, {len(values)} records, {sum(seen.values()) - len(values)} repeated")
    assert set(seen) == set(values)
    assert max(seen.values()) <= DELIVERIES


def test_a_share_group_keeps_no_order() -> None:
    with pytest.raises(ConfigError, match="share=True"):
        ottla.Worker("orders", print, group="g", share=True, order="key", bootstrap_servers="127.0.0.1:1")
