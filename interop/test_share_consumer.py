"""Our share consumers and share group administration at Apache Kafka 4.4, and at our broker."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla import (
    AcknowledgeType,
    Admin,
    Broker,
    ConsumerRecord,
    InvalidRecordStateError,
    NewTopic,
    Producer,
    ShareConsumer,
    TopicPartition,
    WakeupError,
    aio,
)
from ottla.cli.main import main
from ottla.client.admin.config_resource import ConfigResource
from ottla.errors import IllegalStateError, KafkaError, RecordDeserializationError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for

PATIENCE = 60.0
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
LOCK_MS = 2000
QUICK = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "2000",
    "group.share.session.timeout.ms": "6000",
}
SMALL_HEAP = ("-Xms128m", "-Xmx400m")
ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "share-consumer.md"
MEMBER = """
import sys
from ottla import ShareConsumer

servers, group, topic = sys.argv[1:]
consumer = ShareConsumer(bootstrap_servers=servers, group_id=group)
consumer.subscribe([topic])
while not (records := consumer.poll(1.0)):
    pass
print(len(records), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module", params=["apache", "ottla"])
def share_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of either broker, with short locks, heartbeat intervals and sessions."""
    if request.param == "apache":
        rival.fetch()
        with rival.apache_kafka(QUICK, heap=SMALL_HEAP) as kafka:
            yield kafka.bootstrap_servers
        return
    settings: dict[str, Any] = {name.replace(".", "_"): int(value) for name, value in QUICK.items()}
    with Broker(process=True, **settings) as broker:
        yield broker.bootstrap_servers


class Place:
    """A topic of one partition and a share group that reads it from the beginning."""

    def __init__(self, servers: str, count_after_loss: int) -> None:
        self.servers = servers
        self.count_after_loss = count_after_loss
        """The delivery count of a record after its first session has ended: ours does not count that delivery."""
        self.topic = f"queue-{uuid.uuid4().hex[:8]}"
        self.group = f"workers-{uuid.uuid4().hex[:8]}"
        self.tp = TopicPartition(self.topic, 0)
        self.admin = Admin(bootstrap_servers=servers)
        self.admin.create_topics([NewTopic(self.topic)])
        self.made: list[ShareConsumer[Any, Any]] = []
        self.configure(
            **{
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": str(LOCK_MS),
                "share.renew.acknowledge.enable": "true",
            }
        )

    def configure(self, **configs: str) -> None:
        self.admin.alter_configs({ConfigResource("group", self.group): configs})

    def produce(self, count: int, start: int = 0) -> None:
        """Write records with the numbers from `start` on, in one batch."""
        with Producer(bootstrap_servers=self.servers, linger_ms=1000, enable_idempotence=False) as producer:
            for n in range(start, start + count):
                producer.send(self.topic, b"%d" % n)

    def member(self, settings: dict[str, Any] | None = None, *, explicit: bool = True) -> ShareConsumer[Any, Any]:
        """Return a subscribed member of the group."""
        mode = "explicit" if explicit else "implicit"
        consumer: ShareConsumer[Any, Any] = ShareConsumer(
            {"bootstrap.servers": self.servers, "group.id": self.group, "share.acknowledgement.mode": mode}
            | (settings or {})
        )
        self.made.append(consumer)
        consumer.subscribe([self.topic])
        return consumer

    def close(self) -> None:
        for consumer in self.made:
            consumer.close()
        self.admin.close()


@pytest.fixture
def place(request: pytest.FixtureRequest, share_broker: str) -> Iterator[Place]:
    found = Place(share_broker, 2 if "apache" in request.node.name else 1)
    try:
        yield found
    finally:
        found.close()


def receive(consumer: ShareConsumer[Any, Any], count: int) -> list[ConsumerRecord[Any, Any]]:
    """Return the records of the first poll that has some; it has to have `count`."""
    deadline = time.monotonic() + PATIENCE
    while not (records := consumer.poll(1.0)) and time.monotonic() < deadline:
        pass
    assert len(records) == count
    return list(records)


def acknowledge(
    consumer: ShareConsumer[Any, Any], records: list[ConsumerRecord[Any, Any]], kind: AcknowledgeType
) -> None:
    for record in records:
        consumer.acknowledge(record, kind)


def deliveries(records: list[ConsumerRecord[Any, Any]]) -> list[tuple[int, int | None]]:
    return [(record.offset, record.delivery_count) for record in records]


def test_with_implicit_acknowledgement_the_next_poll_accepts(place: Place) -> None:
    place.produce(3)
    consumer = place.member(explicit=False)

    first = receive(consumer, 3)
    assert deliveries(first) == [(0, 1), (1, 1), (2, 1)]
    assert [record.value for record in first] == [b"0", b"1", b"2"]
    assert not consumer.poll(1.0)
    consumer.close()
    place.produce(1, 3)

    assert deliveries(receive(place.member(explicit=False), 1)) == [(3, 1)]


def test_with_implicit_acknowledgement_a_commit_accepts(place: Place) -> None:
    place.produce(3)
    consumer = place.member(explicit=False)
    receive(consumer, 3)

    assert consumer.commit() == {place.tp: None}
    consumer.close()
    place.produce(1, 3)

    assert deliveries(receive(place.member(explicit=False), 1)) == [(3, 1)]


def test_close_releases_what_is_not_acknowledged(place: Place) -> None:
    place.produce(3)
    consumer = place.member()
    first, second, third = receive(consumer, 3)
    consumer.acknowledge(first)
    consumer.acknowledge(third, REJECT)

    consumer.close()

    assert deliveries(receive(place.member(), 1)) == [(second.offset, place.count_after_loss)]


def test_each_record_has_its_own_acknowledgement(place: Place) -> None:
    place.produce(4)
    consumer = place.member()
    accepted, released, rejected, also_released = receive(consumer, 4)
    consumer.acknowledge(accepted)
    consumer.acknowledge(released, RELEASE)
    consumer.acknowledge(rejected, REJECT)
    consumer.acknowledge(place.topic, 0, also_released.offset, RELEASE)

    assert consumer.commit() == {place.tp: None}

    again = receive(consumer, 2)
    assert deliveries(again) == [(1, 2), (3, 2)]
    assert consumer.acquisition_lock_timeout_ms() == LOCK_MS


def test_with_explicit_acknowledgement_a_poll_needs_all_acknowledgements(place: Place) -> None:
    place.produce(2)
    consumer = place.member()
    first, second = receive(consumer, 2)
    consumer.acknowledge(first)

    with pytest.raises(IllegalStateError, match="1 records are not acknowledged, the first at offset 1"):
        consumer.poll(0)

    consumer.acknowledge(second)
    assert not consumer.poll(0.5)


def test_a_released_record_is_delivered_until_its_limit(place: Place) -> None:
    place.produce(1)
    consumer = place.member()
    counts = []
    for _ in range(5):
        (record,) = receive(consumer, 1)
        counts.append(record.delivery_count)
        consumer.acknowledge(record, RELEASE)

    assert counts == [1, 2, 3, 4, 5]
    assert not consumer.poll(2.0)


def test_a_renewed_lock_outlives_the_lock_time(place: Place) -> None:
    place.produce(1)
    consumer, other = place.member(), place.member()
    (record,) = receive(consumer, 1)
    end = time.monotonic() + 2.5 * LOCK_MS / 1000

    while time.monotonic() < end:
        consumer.acknowledge(record, RENEW)
        assert consumer.commit() == {place.tp: None}
        assert not other.poll(LOCK_MS / 4000)

    (same,) = receive(consumer, 1)
    assert (same.offset, same.delivery_count) == (0, 1)
    consumer.acknowledge(same)
    assert consumer.commit() == {place.tp: None}
    assert not other.poll(2 * LOCK_MS / 1000)


def test_poll_renews_and_returns_the_record_again(place: Place) -> None:
    place.produce(2)
    consumer = place.member()
    first, second = receive(consumer, 2)
    consumer.acknowledge(first, RENEW)
    consumer.acknowledge(second)

    (again,) = receive(consumer, 1)

    assert (again.offset, again.delivery_count) == (first.offset, 1)
    consumer.acknowledge(again)
    assert consumer.commit() == {place.tp: None}


def test_an_expired_lock_is_delivered_again_and_its_acknowledgement_fails(place: Place) -> None:
    place.produce(1)
    consumer, other = place.member(), place.member()
    (record,) = receive(consumer, 1)

    (again,) = receive(other, 1)

    assert again.delivery_count == 2
    consumer.acknowledge(record)
    (error,) = consumer.commit().values()
    assert isinstance(error, InvalidRecordStateError)
    other.acknowledge(again)
    assert other.commit() == {place.tp: None}


def test_two_members_share_one_partition(place: Place) -> None:
    settings = {"max.poll.records": 10, "share.acquire.mode": "record_limit"}
    members = [place.member(settings, explicit=False) for _ in range(2)]
    for consumer in members:
        consumer.poll(0.1)
    place.produce(100)
    counts: list[dict[int, int]] = [{}, {}]
    deadline = time.monotonic() + PATIENCE

    while sum(map(len, counts)) < 100 and time.monotonic() < deadline:
        for count, consumer in zip(counts, members, strict=True):
            for record in consumer.poll(0.2):
                count[record.offset] = count.get(record.offset, 0) + 1
    for consumer in members:
        consumer.commit()

    assert sorted([*counts[0], *counts[1]]) == list(range(100))
    assert all(counts), "both have worked"
    assert max([*counts[0].values(), *counts[1].values()]) == 1


def test_the_records_of_a_killed_member_go_to_another(place: Place) -> None:
    place.produce(3)
    command = [sys.executable, "-c", MEMBER, place.servers, place.group, place.topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().strip() == "3"
        victim.send_signal(signal.SIGKILL)

    assert deliveries(receive(place.member(), 3)) == [(offset, place.count_after_loss) for offset in range(3)]


@pytest.mark.parametrize(
    ("level", "expected"),
    [("read_committed", [b"kept", b"last"]), ("read_uncommitted", [b"kept", b"lost", b"last"])],
)
def test_transactions_are_read_by_the_groups_isolation_level(place: Place, level: str, expected: list[bytes]) -> None:
    place.configure(**{"share.isolation.level": level})
    with Producer(bootstrap_servers=place.servers, transactional_id=place.group) as producer:
        producer.init_transactions()
        for value, ends in ((b"kept", producer.commit_transaction), (b"lost", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(place.topic, value)
            producer.flush()
            ends()
        producer.begin_transaction()
        producer.send(place.topic, b"last")
        producer.commit_transaction()
    consumer = place.member(explicit=False)
    values: list[bytes | None] = []
    deadline = time.monotonic() + PATIENCE

    while len(values) < len(expected) and time.monotonic() < deadline:
        values += [record.value for record in consumer.poll(1.0)]
    assert values == expected

    # The client acknowledges the offsets of the markers.
    wait_for(lambda: not consumer.poll(0) and lag(place) == 0, "nothing is left")


def lag(place: Place) -> int | None:
    """Return the number of records to be processed. Kafka stores a start offset later, with the next acknowledgement."""
    found = place.admin.list_share_group_offsets(place.group).get(place.tp)
    return None if found is None else found.lag


def start_offset(place: Place) -> int:
    return place.admin.list_share_group_offsets(place.group)[place.tp].start_offset


def test_the_callback_gets_the_result_of_each_acknowledgement(place: Place) -> None:
    place.produce(2)
    consumer = place.member()
    results: list[tuple[dict[TopicPartition, set[int]], Exception | None]] = []
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: results.append((offsets, error)))
    acknowledge(consumer, receive(consumer, 2), ACCEPT)

    consumer.commit_async()
    deadline = time.monotonic() + PATIENCE
    while not results and time.monotonic() < deadline:
        consumer.poll(0.1)

    assert results == [({place.tp: {0, 1}}, None)]


def test_a_callback_must_not_call_the_consumer_and_its_error_is_raised(place: Place) -> None:
    place.produce(1)
    consumer = place.member()
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: consumer.commit_async())
    acknowledge(consumer, receive(consumer, 1), ACCEPT)

    with pytest.raises(IllegalStateError, match="in its acknowledgement commit callback"):
        consumer.commit()


def test_a_record_that_cannot_be_deserialized_is_released_or_rejected_by_the_user(place: Place) -> None:
    place.produce(2)
    with Producer(bootstrap_servers=place.servers) as producer:
        producer.send(place.topic, b"three")
    consumer = place.member({"value.deserializer": int})
    records: list[Any] = []
    errors: list[tuple[int, int | None]] = []
    deadline = time.monotonic() + PATIENCE

    while len(errors) < 2 and time.monotonic() < deadline:
        try:
            found = list(consumer.poll(1.0))
        except RecordDeserializationError as error:
            errors.append((error.offset, error.record.delivery_count))
            if len(errors) == 2:
                consumer.acknowledge(place.topic, 0, error.offset, REJECT)
        else:
            records += [record.value for record in found]
            acknowledge(consumer, found, ACCEPT)

    assert records == [0, 1]
    assert errors == [(2, 1), (2, 2)]
    assert not consumer.poll(1.0)


def test_the_limit_of_records_is_exact_in_record_limit_mode(place: Place) -> None:
    place.produce(20)
    consumer = place.member({"max.poll.records": 7, "share.acquire.mode": "record_limit"})

    acknowledge(consumer, receive(consumer, 7), ACCEPT)

    other = place.member({"max.poll.records": 100})
    assert [record.offset for record in receive(other, 13)] == list(range(7, 20))


def test_a_batch_that_is_acquired_whole_is_returned_in_portions(place: Place) -> None:
    place.produce(20)
    consumer = place.member({"max.poll.records": 7})
    counts = []
    for expected in (7, 7, 6):
        records = receive(consumer, expected)
        counts.append(len(records))
        acknowledge(consumer, records, ACCEPT)

    assert consumer.commit() == {place.tp: None}
    assert sum(counts) == 20


def test_wakeup_ends_a_poll(place: Place) -> None:
    consumer = place.member()
    threading.Timer(0.5, consumer.wakeup).start()

    with pytest.raises(WakeupError):
        consumer.poll(PATIENCE)

    place.produce(1)
    receive(consumer, 1)


def test_unsubscribe_releases_and_a_new_subscription_joins_again(place: Place) -> None:
    place.produce(1)
    consumer = place.member()
    receive(consumer, 1)

    consumer.unsubscribe()
    assert consumer.subscription() == set()
    with pytest.raises(IllegalStateError, match="not subscribed"):
        consumer.poll(0)

    consumer.subscribe([place.topic])
    assert deliveries(receive(consumer, 1)) == [(0, place.count_after_loss)]


def test_in_asyncio_it_does_the_same(place: Place) -> None:
    place.produce(3)

    asyncio.run(work_in_asyncio(place))

    wait_for(lambda: lag(place) == 0, "all records are processed")


async def work_in_asyncio(place: Place) -> None:
    settings = {"bootstrap.servers": place.servers, "group.id": place.group, "share.acknowledgement.mode": "explicit"}
    async with aio.ShareConsumer(settings) as consumer:
        consumer.subscribe([place.topic])
        while not (records := await consumer.poll(1.0)):
            pass
        first, second, third = records
        consumer.acknowledge(first)
        consumer.acknowledge(second, RELEASE)
        consumer.acknowledge(third, RENEW)
        assert await consumer.commit() == {place.tp: None}
        (renewed,) = await consumer.poll(PATIENCE)
        assert renewed.offset == third.offset
        consumer.acknowledge(renewed)
        polling = asyncio.ensure_future(consumer.poll(PATIENCE))
        await asyncio.sleep(0)
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling
        (again,) = await consumer.poll(PATIENCE)
        assert (again.offset, again.delivery_count) == (second.offset, 2)
        consumer.acknowledge(again)


def test_the_group_is_administered(place: Place) -> None:
    place.produce(5)
    consumer = place.member()
    acknowledge(consumer, receive(consumer, 5), ACCEPT)
    consumer.commit()
    admin = place.admin

    assert place.group in [each.group_id for each in admin.list_groups(types=["share"])]
    described = admin.describe_share_groups([place.group])[place.group]
    assert (described.state, len(described.members)) == ("Stable", 1)
    assert described.members[0].client_id == consumer.client_id
    assert described.members[0].assignment == (place.tp,)
    wait_for(lambda: lag(place) == 0, "the acknowledgements are stored")
    with pytest.raises(KafkaError, match="has members"):
        admin.alter_share_group_offsets(place.group, {place.tp: 2})
    consumer.close()
    wait_for(
        lambda: admin.describe_share_groups([place.group])[place.group].state == "Empty", "the group becomes empty"
    )

    admin.alter_share_group_offsets(place.group, {place.tp: 2})
    assert admin.list_share_group_offsets(place.group, [place.tp])[place.tp].start_offset == 2
    assert deliveries(receive(place.member(), 3)) == [(2, 1), (3, 1), (4, 1)]
    place.made[-1].close()
    wait_for(
        lambda: admin.describe_share_groups([place.group])[place.group].state == "Empty", "the group becomes empty"
    )
    admin.delete_share_group_offsets(place.group, [place.topic])
    assert admin.list_share_group_offsets(place.group) == {}
    admin.delete_share_groups([place.group])
    assert place.group not in [each.group_id for each in admin.list_groups(types=["share"])]


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a command and return its output as JSON, if it prints any."""
    capsys.readouterr()
    status = main(list(arguments))
    out, err = capsys.readouterr()
    assert status == 0, err
    return json.loads(out) if "--json" in arguments else out


def test_the_command_line_shows_resets_and_deletes_the_group(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.produce(5)
    consumer = place.member()
    acknowledge(consumer, receive(consumer, 5), ACCEPT)
    consumer.commit()
    server = ("--bootstrap-server", place.servers)
    wait_for(lambda: lag(place) == 0, "the acknowledgements are stored")

    assert place.group in run_cli(capsys, "groups", "list", *server, "--type", "share")
    (row,) = run_cli(capsys, "groups", "describe", place.group, *server, "--json")
    assert (row["topic"], row["partition"], row["start_offset"] in (0, 5), row["lag"]) == (place.topic, 0, True, 0)
    (member,) = run_cli(capsys, "groups", "describe", place.group, "--members", *server, "--json")
    assert (member["client_id"], member["assignment"]) == (consumer.client_id, f"{place.topic}:0")
    (state,) = run_cli(capsys, "groups", "describe", place.group, "--state", *server, "--json")
    assert (state["state"], state["number_of_members"]) == ("Stable", 1)
    consumer.close()
    wait_for(
        lambda: place.admin.describe_share_groups([place.group])[place.group].state == "Empty", "the group is empty"
    )

    reset = ("groups", "reset-offsets", place.group, "--topic", place.topic, "--to-earliest", *server, "--json")
    assert run_cli(capsys, *reset, "--execute")[0]["new_offset"] == 0
    assert start_offset(place) == 0
    run_cli(capsys, "groups", "delete-offsets", place.group, "--topic", place.topic, "--yes", *server)
    assert place.admin.list_share_group_offsets(place.group) == {}
    run_cli(capsys, "groups", "delete", place.group, "--yes", *server)
    assert place.group not in run_cli(capsys, "groups", "list", *server, "--type", "share")


def test_the_example_of_the_page_works(place: Place) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    namespace: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), namespace)
    place.produce(4)
    seen: list[tuple[bytes | None, int | None]] = []

    def process(record: ConsumerRecord) -> None:
        seen.append((record.value, record.delivery_count))
        if record.value == b"1" and record.delivery_count == 1:
            raise ConnectionError
        if record.value == b"2":
            raise ValueError

    namespace["work"](place.servers, place.topic, place.group, process)

    assert seen == [(b"0", 1), (b"1", 1), (b"2", 1), (b"3", 1), (b"1", 2)]
