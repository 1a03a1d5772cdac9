"""Workers of a consumer group against a broker, with threads and in asyncio."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from typing import Any

import pytest

import ottla
from ottla import Backoff, ConfigError
from ottla.client.work.dead_letters import read_dead_letter
from ottla.client.work.state.finished_offsets import decode_finished
from ottla.client.work.state.work_status import WorkStatus, decode_status
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import records_of
from tests.client.work.running import WAYS, Running, committed, committed_offset, fill, running, spend

each_way = pytest.mark.parametrize("way", WAYS)
SOON = Backoff(2, base=0.01, cap=0.01)


def value_of(record: ottla.ConsumerRecord) -> str:
    return (record.value or b"").decode()


@each_way
def test_each_record_is_processed_and_committed(servers: str, new_topic: NewTopicName, way: str) -> None:
    topic = new_topic(3)
    values = [str(number) for number in range(300)]
    seen: list[str] = []
    with running(way, servers, topic, lambda record: seen.append(value_of(record))):
        fill(servers, topic, values, key=str.encode)
        eventually(lambda: len(seen) == 300)
    assert sorted(seen) == sorted(values)
    assert sum(committed_offset(servers, topic, topic, number) for number in range(3)) == 300


@each_way
def test_records_of_a_key_keep_their_order_and_never_overlap(servers: str, new_topic: NewTopicName, way: str) -> None:
    topic = new_topic(2)
    seen: dict[str, list[int]] = defaultdict(list)
    busy: set[str] = set()
    overlaps: list[str] = []

    def work(record: ottla.ConsumerRecord) -> None:
        key, number = value_of(record).split("-")
        if key in busy:
            overlaps.append(key)
        busy.add(key)
        spend(0.001)
        seen[key].append(int(number))
        busy.discard(key)

    fill(servers, topic, [f"{n % 7}-{n}" for n in range(200)], key=lambda value: value.split("-")[0].encode())
    with running(way, servers, topic, work, concurrency=8):
        eventually(lambda: sum(map(len, seen.values())) == 200)
    assert not overlaps
    assert all(numbers == sorted(numbers) for numbers in seen.values())


@each_way
def test_calls_run_together_up_to_the_concurrency(servers: str, topic: str, way: str) -> None:
    barrier = threading.Barrier(5, timeout=60)
    fill(servers, topic, ["a", "b", "c", "d"])
    with running(way, servers, topic, lambda record: barrier.wait(), concurrency=4):
        barrier.wait()  # four calls wait here at the same time


@each_way
def test_a_record_that_fails_is_retried_and_does_not_block_other_keys(servers: str, topic: str, way: str) -> None:
    calls: list[str] = []
    is_repaired = threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        calls.append(value_of(record))
        if value_of(record) == "bad" and not is_repaired.is_set():
            raise ConnectionError("not now")

    fill(servers, topic, ["bad", "good", "behind"], key=lambda value: b"2" if value == "good" else b"1")
    with running(way, servers, topic, work, retries=Backoff(10_000, base=0.01, cap=0.01)):
        eventually(lambda: calls.count("bad") > 3 and "good" in calls)
        assert "behind" not in calls
        assert committed_offset(servers, topic, topic) <= 0
        is_repaired.set()
        eventually(lambda: "behind" in calls)
    assert committed_offset(servers, topic, topic) == 3


def test_the_first_failed_call_is_a_warning_and_others_soon_after_it_are_not(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(servers, topic, ["bad"])
    with caplog.at_level(logging.INFO, "ottla.client.work.loop"), pytest.raises(ZeroDivisionError):
        Running("threads", servers, topic, lambda _: 1 / 0, retries=Backoff(3, base=0.001, cap=0.001)).join()
    found = [(each.levelname, each.getMessage()) for each in caplog.records if "is retried" in each.getMessage()]
    assert [level for level, _ in found] == ["WARNING", "INFO", "INFO"]
    assert "offset=0 attempts=1" in found[0][1]
    assert "ZeroDivisionError" in found[0][1]


@each_way
def test_a_record_that_always_fails_becomes_a_dead_letter(servers: str, new_topic: NewTopicName, way: str) -> None:
    topic, dead = new_topic(), new_topic()
    seen: list[str] = []

    def work(record: ottla.ConsumerRecord) -> None:
        seen.append(value_of(record))
        if value_of(record) == "bad":
            raise ValueError("cannot be right")

    fill(servers, topic, ["a", "bad", "b"], key=str.encode)
    with running(way, servers, topic, work, retries=SOON, dead_letters=dead):
        eventually(lambda: committed_offset(servers, topic, topic) == 3)
    [origin] = [each for each in records_of(servers, topic) if each.value == b"bad"]
    [letter] = records_of(servers, dead)
    about = read_dead_letter(letter.headers)
    assert seen.count("bad") == 3
    assert (letter.key, letter.value, about.headers) == (b"bad", b"bad", (("own", b"kept"),))
    assert (about.topic, about.partition, about.offset, about.timestamp) == (topic, 0, 1, origin.timestamp)
    assert (about.group, about.attempts, about.error, about.message) == (
        topic,
        3,
        "builtins.ValueError",
        "cannot be right",
    )


@each_way
def test_without_a_topic_for_dead_letters_the_worker_ends_with_the_error(servers: str, topic: str, way: str) -> None:
    def work(record: ottla.ConsumerRecord) -> None:
        if value_of(record) == "bad":
            raise ValueError("cannot be right")

    fill(servers, topic, ["a", "b", "bad", "c"])
    worker = Running(way, servers, topic, work, retries=0)
    with pytest.raises(ValueError, match="cannot be right"):
        worker.join()
    assert committed_offset(servers, topic, topic) <= 2


@each_way
def test_a_record_that_cannot_be_deserialized_becomes_a_dead_letter(
    servers: str, new_topic: NewTopicName, way: str
) -> None:
    topic, dead = new_topic(), new_topic()
    seen: list[int] = []
    fill(servers, topic, ["1", "x", "2"], key=str.encode)
    settings: dict[str, Any] = {"value_deserializer": int, "dead_letters": dead}
    with running(way, servers, topic, lambda record: seen.append(record.value), **settings):
        eventually(lambda: committed_offset(servers, topic, topic) == 3)
    [letter] = records_of(servers, dead)
    assert (letter.value, sorted(seen)) == (b"x", [1, 2])
    assert read_dead_letter(letter.headers).error == "ottla.errors.RecordDeserializationError"


@each_way
def test_a_restart_skips_what_was_finished_above_an_unfinished_record(servers: str, topic: str, way: str) -> None:
    seen: list[str] = []
    go_on = threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        if value_of(record) == "0":
            go_on.wait(60)
            raise ConnectionError("stopped")
        seen.append(value_of(record))

    fill(servers, topic, [str(number) for number in range(50)])
    with running(way, servers, topic, work, retries=Backoff(5, base=60.0), drain_seconds=60) as first:
        eventually(lambda: len(seen) == 49)
        first.stop()
        go_on.set()
    commit = committed(servers, topic, topic)
    assert commit is not None
    assert (commit.offset, decode_finished(0, commit.metadata)) == (0, [(1, 50)])

    again: list[str] = []
    fill(servers, topic, ["50"])
    with running(way, servers, topic, lambda record: again.append(value_of(record))):
        eventually(lambda: committed_offset(servers, topic, topic) == 51)
    assert sorted(again) == ["0", "50"]


@each_way
def test_a_stop_waits_for_running_calls_and_commits_them(servers: str, topic: str, way: str) -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        started.set()
        go_on.wait(60)

    fill(servers, topic, ["a", "b"], key=lambda value: b"same")
    with running(way, servers, topic, work) as worker:
        started.wait(60)
        worker.stop()
        assert not worker.is_over()
        go_on.set()
        worker.join()
    assert committed_offset(servers, topic, topic) == 1


@each_way
def test_a_second_stop_does_not_wait_and_the_record_is_repeated(servers: str, topic: str, way: str) -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        started.set()
        go_on.wait(60)

    fill(servers, topic, ["a"])
    with running(way, servers, topic, work) as worker:
        started.wait(60)
        worker.stop()
        worker.stop()
        # The thread itself ends later in asyncio, because asyncio.run waits for the thread of the function.
        eventually(lambda: worker.worker is not None and worker.worker.is_over)
        go_on.set()
    assert committed_offset(servers, topic, topic) <= 0


@each_way
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_share_the_partitions_and_a_rebalance_loses_and_repeats_nothing(
    servers: str, new_topic: NewTopicName, way: str, protocol: str
) -> None:
    topic = new_topic(4)
    seen: list[str] = []

    def work(record: ottla.ConsumerRecord) -> None:
        spend(0.002)
        seen.append(value_of(record))

    values = [str(number) for number in range(400)]
    fill(servers, topic, values[:200], key=str.encode)
    settings: dict[str, Any] = {"group_protocol": protocol}
    with running(way, servers, topic, work, **settings):
        eventually(lambda: len(seen) > 20)
        with running(way, servers, topic, work, **settings):
            eventually(lambda: len(seen) > 100)
            fill(servers, topic, values[200:], key=str.encode)
            eventually(lambda: len(seen) > 250)
        eventually(lambda: len(set(seen)) == 400)
    assert sorted(seen) == sorted(values)


@each_way
def test_memory_is_bounded_by_pausing(servers: str, topic: str, way: str) -> None:
    go_on = threading.Event()
    seen: list[str] = []

    def work(record: ottla.ConsumerRecord) -> None:
        go_on.wait(60)
        seen.append(value_of(record))

    fill(servers, topic, [str(number) for number in range(200)])
    with running(way, servers, topic, work, buffer_records=20, concurrency=2) as worker:
        assert worker.worker is not None
        schedule = worker.worker._schedule
        eventually(lambda: schedule.unfinished_count >= 20)
        assert schedule.unfinished_count <= 40
        go_on.set()
        eventually(lambda: len(seen) == 200)


def test_a_call_that_takes_too_long_is_cancelled_and_fails(servers: str, new_topic: NewTopicName) -> None:
    topic, dead = new_topic(), new_topic()
    fill(servers, topic, ["slow", "quick"], key=str.encode)

    async def work(record: ottla.ConsumerRecord) -> None:
        if value_of(record) == "slow":
            await asyncio.Event().wait()

    async def run() -> None:
        settings = {"time_limit": 0.05, "retries": 1, "dead_letters": dead, "commit_interval_ms": 20}
        worker = ottla.aio.Worker(topic, work, {"bootstrap.servers": servers}, group=topic, **settings)
        task = asyncio.create_task(worker.run())
        await asyncio.to_thread(eventually, lambda: committed_offset(servers, topic, topic) == 2)
        worker.stop()
        await task

    asyncio.run(run())
    [letter] = records_of(servers, dead)
    about = read_dead_letter(letter.headers)
    assert (letter.value, about.attempts, about.error) == (b"slow", 2, "builtins.TimeoutError")
    assert about.message == "the call took longer than time_limit = 0.05 s"


def test_a_cancelled_task_cancels_its_calls_and_commits_what_is_finished(servers: str, topic: str) -> None:
    fill(servers, topic, ["quick", "slow"])
    cancelled: list[str] = []

    async def run() -> None:
        started = asyncio.Event()

        async def work(record: ottla.ConsumerRecord) -> None:
            if value_of(record) == "slow":
                started.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.append(value_of(record))
                    raise

        task = asyncio.create_task(ottla.aio.work(topic, work, {"bootstrap.servers": servers}, group=topic))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert cancelled == ["slow"]
    assert committed_offset(servers, topic, topic) == 1


def test_a_plain_function_that_never_waits_lets_the_loop_run(servers: str, topic: str) -> None:
    seen: list[str] = []
    fill(servers, topic, [str(number) for number in range(1000)])

    async def run() -> None:
        worker = ottla.aio.Worker(
            topic, lambda record: seen.append(value_of(record)), {"bootstrap.servers": servers}, group=topic
        )
        task = asyncio.create_task(worker.run())
        while len(seen) < 1000:
            await asyncio.sleep(0)
        worker.stop()
        await task

    asyncio.run(run())
    assert committed_offset(servers, topic, topic) == 1000


@each_way
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_an_end_without_records_is_committed(servers: str, topic: str, way: str, isolation: str) -> None:
    seen: list[str] = []
    with running(way, servers, topic, lambda record: seen.append(value_of(record)), isolation_level=isolation):
        with ottla.Producer(bootstrap_servers=servers, transactional_id=topic) as producer:
            producer.init_transactions()
            for number in range(2):
                producer.begin_transaction()
                producer.send(topic, str(number).encode()).result()
                if number == 0:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
        eventually(lambda: committed_offset(servers, topic, topic) == 4)
    assert seen[:1] == ["0"]


def test_the_status_of_a_worker_is_in_its_commits(servers: str, new_topic: NewTopicName) -> None:
    topic, dead = new_topic(), new_topic()
    go_on = threading.Event()

    def work(record: ottla.ConsumerRecord) -> None:
        if value_of(record) in ("bad", "later"):
            raise ConnectionError(value_of(record))
        go_on.wait()

    def status() -> WorkStatus | None:
        commit = committed(servers, topic, topic)
        return None if commit is None else decode_status(commit.metadata)

    fill(
        servers,
        topic,
        ["bad", "slow", "later", "behind"],
        key=lambda value: b"k" if value in ("later", "behind") else value.encode(),
    )
    settings: dict[str, Any] = {"retries": Backoff(1, base=60.0, give_up_on=(KeyError,)), "dead_letters": dead}
    with running("threads", servers, topic, work, **settings):
        eventually(lambda: (found := status()) is not None and found.retrying == 2)
        found = status()
        assert found is not None
        assert (found.running, found.waiting, found.dead) == (1, 1, 0)
        assert found.oldest > 0
        go_on.set()
        eventually(lambda: (found := status()) is not None and found.running == 0)


def has_finished(commit: ottla.OffsetAndMetadata | None) -> bool:
    """True if the metadata lists finished offsets."""
    return commit is not None and bool(decode_finished(commit.offset, commit.metadata))


def test_metadata_that_the_broker_rejects_becomes_smaller() -> None:
    with ottla.Broker(offset_metadata_max_bytes=100) as broker:
        servers = broker.bootstrap_servers
        seen: list[str] = []

        def work(record: ottla.ConsumerRecord) -> None:
            if int(value_of(record)) % 2 == 0:
                raise ConnectionError("later")
            seen.append(value_of(record))

        fill(servers, "orders", [str(number) for number in range(300)])
        with running("threads", servers, "orders", work, retries=Backoff(5, base=60.0)):
            eventually(lambda: has_finished(committed(servers, "orders", "orders")))
        commit = committed(servers, "orders", "orders")
        assert commit is not None
        assert commit.offset == 0
        assert 1 <= len(decode_finished(0, commit.metadata)) < 150


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"group": ""}, "group"),
        ({"order": "random"}, "order"),
        ({"concurrency": 0}, "concurrency"),
        ({"retries": "often"}, "retries"),
        ({"dead_letters": "orders"}, "topics to read"),
        ({"drain_seconds": -1}, "drain_seconds"),
        ({"enable_auto_commit": True}, "enable.auto.commit"),
        ({"group_id": "x"}, "group.id"),
        ({"time_limit": 5.0}, "ottla.aio.work"),
    ],
)
def test_an_invalid_setting_is_one_clear_error(wrong: dict[str, Any], message: str) -> None:
    settings = {"group": "g", "bootstrap_servers": "127.0.0.1:1", **wrong}
    with pytest.raises(ConfigError, match=message):
        ottla.Worker("orders", print, **settings)


def test_a_coroutine_function_needs_asyncio() -> None:
    async def work(record: ottla.ConsumerRecord) -> None: ...

    with pytest.raises(TypeError, match=r"ottla\.aio\.work"):
        ottla.Worker("orders", work, group="g", bootstrap_servers="127.0.0.1:1")
