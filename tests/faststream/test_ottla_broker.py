"""Faststream on Ottla: the stories of faststream's own Kafka tests, which its source distribution leaves out."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import pytest
from aiokafka.errors import ConsumerStoppedError, IllegalOperation, KafkaError
from faststream import AckPolicy, BaseMiddleware
from faststream.exceptions import IncorrectState, SubscriberNotFound
from faststream.kafka.exceptions import BatchBufferOverflowException
from faststream.security import SASLOAuthBearer

from ottla import Admin, Broker, NewTopic
from ottla import TopicPartition as Place
from ottla.errors import ConfigError, MissingExtraError
from ottla.faststream import (
    ConsumerRecord,
    KafkaMessage,
    KafkaPublishMessage,
    KafkaResponse,
    OttlaBroker,
    OttlaPublisher,
    OttlaRoute,
    OttlaRouter,
    TestOttlaBroker,
    Topic,
    TopicPartition,
)
from ottla.faststream.client_settings import add_ports
from tests.patience import eventually

SECONDS = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """The name of a topic, or of a group, for this test."""
    return "".join(each if each.isalnum() else "-" for each in request.node.name)


@pytest.fixture
def app(broker: Broker) -> OttlaBroker:
    return new_app(broker)


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return run


def new_app(broker: Broker, **arguments: Any) -> OttlaBroker:
    return OttlaBroker(broker.bootstrap_servers, **arguments)


@asynccontextmanager
async def started(app: OttlaBroker) -> AsyncIterator[OttlaBroker]:
    async with app, asyncio.timeout(SECONDS):
        await app.start()
        yield app


class Seen:
    """Messages that a function has received."""

    def __init__(self, wanted: int = 1) -> None:
        self.found: list[Any] = []
        self._wanted = wanted
        self._is_complete = asyncio.Event()

    def add(self, message: Any) -> None:
        self.found.append(message)
        if len(self.found) >= self._wanted:
            self._is_complete.set()

    async def wait(self) -> list[Any]:
        await self._is_complete.wait()
        return self.found


def committed(broker: Broker, group: str, topic: str, partition: int = 0) -> int:
    place = Place(topic, partition)
    with Admin(broker.client_settings()) as admin:
        found = admin.list_consumer_group_offsets(group).get(place)
    return -1 if found is None else found.offset


@in_event_loop
async def test_a_function_receives_what_is_published(app: OttlaBroker, queue: str) -> None:
    seen = Seen(2)

    @app.subscriber(queue)
    async def handle(body: dict[str, int], message: KafkaMessage) -> None:
        assert isinstance(message.raw_message, ConsumerRecord)
        seen.add((body, message.raw_message.key, message.headers["own"], message.correlation_id))

    async with started(app):
        sent = await app.publish({"a": 1}, queue, key=b"k", headers={"own": "kept"}, correlation_id="7")
        assert (sent.topic, sent.partition, sent.offset) == (queue, 0, 0)
        later = await app.publish(
            {"a": 2}, queue, key=b"k", headers={"own": "kept"}, correlation_id="8", no_confirm=True
        )
        assert (await later).offset == 1
        assert await seen.wait() == [({"a": 1}, b"k", "kept", "7"), ({"a": 2}, b"k", "kept", "8")]


@in_event_loop
async def test_subscribers_take_several_topics_and_patterns(app: OttlaBroker, queue: str) -> None:
    several, pattern = Seen(2), Seen(1)
    await create(app, f"{queue}-x", f"{queue}-y", f"{queue}-logs-info")

    @app.subscriber(f"{queue}-x", f"{queue}-y", group_id=f"{queue}-1", auto_offset_reset="earliest")
    async def handle(body: str) -> None:
        several.add(body)

    @app.subscriber(pattern=queue + "-logs-{level}", group_id=f"{queue}-2", auto_offset_reset="earliest")
    async def handle_logs(body: str, message: KafkaMessage) -> None:
        pattern.add((body, message.path))

    async with started(app):
        await app.publish("1", f"{queue}-x")
        await app.publish("2", f"{queue}-y")
        await app.publish("3", f"{queue}-logs-info")
        assert sorted(await several.wait()) == ["1", "2"]
        assert await pattern.wait() == [("3", {"level": "info"})]


async def create(app: OttlaBroker, *topics: str, partitions: int = 1) -> None:
    await app.connect()
    await app.config.admin_client.create_topics([NewTopic(each, partitions, 1) for each in topics])


@in_event_loop
async def test_a_pattern_without_a_group_is_followed(app: OttlaBroker, queue: str) -> None:
    seen = Seen(1)

    @app.subscriber(pattern=queue + ".*", auto_offset_reset="earliest")
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await create(app, f"{queue}-later")
        await app.publish("1", f"{queue}-later")
        assert await seen.wait() == ["1"]


@in_event_loop
async def test_partitions_are_assigned_without_a_group(app: OttlaBroker, queue: str) -> None:
    seen = Seen(1)
    await create(app, queue, partitions=3)

    @app.subscriber(partitions=[TopicPartition(queue, 1), TopicPartition(queue, 2)])
    async def handle(body: str, message: KafkaMessage) -> None:
        seen.add((body, message.raw_message.partition))  # type: ignore[union-attr]

    async with started(app):
        await app.publish("0", queue, partition=0)
        await app.publish("2", queue, partition=2)
        assert await seen.wait() == [("2", 2)]


@in_event_loop
async def test_a_declared_topic_has_its_partitions(app: OttlaBroker, queue: str, broker: Broker) -> None:
    @app.subscriber(Topic(queue, num_partitions=4), group_id=queue)
    async def handle(body: str) -> None: ...

    async with started(app):
        with Admin(broker.client_settings()) as admin:
            assert len(admin.describe_topics([queue])[queue].partitions) == 4


@in_event_loop
async def test_batches_are_published_and_received(app: OttlaBroker, queue: str) -> None:
    seen = Seen(3)

    @app.subscriber(queue, batch=True, batch_timeout_ms=500, group_id=queue, auto_offset_reset="earliest")
    async def handle(bodies: list[str], message: KafkaMessage) -> None:
        assert isinstance(message.raw_message, tuple)
        for body, record in zip(bodies, message.raw_message, strict=True):
            seen.add((body, record.key))

    async with started(app):
        await app.publish_batch("1", KafkaPublishMessage("2", key=b"k"), "3", topic=queue)
        assert sorted(await seen.wait()) == [("1", None), ("2", b"k"), ("3", None)]


@in_event_loop
async def test_a_batch_has_at_most_max_records(app: OttlaBroker, queue: str) -> None:
    seen = Seen(2)

    @app.subscriber(
        queue, batch=True, max_records=2, batch_timeout_ms=500, group_id=queue, auto_offset_reset="earliest"
    )
    async def handle(bodies: list[str]) -> None:
        seen.add(bodies)

    async with app:
        await create(app, queue)
        await app.publish_batch("1", "2", "3", "4", topic=queue)
        async with asyncio.timeout(SECONDS):
            await app.start()
            assert await seen.wait() == [["1", "2"], ["3", "4"]]


@in_event_loop
async def test_a_batch_that_is_too_large_names_the_message(broker: Broker, queue: str) -> None:
    app = new_app(broker, max_batch_size=1000)
    async with started(app):
        with pytest.raises(BatchBufferOverflowException) as failed:
            await app.publish_batch(b"x" * 500, b"y" * 600, topic=queue)
        assert failed.value.message_position == 1


@in_event_loop
async def test_publishers_send_on_what_a_function_returns(app: OttlaBroker, queue: str) -> None:
    seen = Seen(1)

    @app.subscriber(f"{queue}-1")
    @app.publisher(f"{queue}-2")
    async def double(body: int) -> KafkaResponse:
        return KafkaResponse(body * 2, key=b"k", headers={"by": "double"})

    @app.subscriber(f"{queue}-2")
    async def handle(body: int, message: KafkaMessage) -> None:
        seen.add((body, message.raw_message.key, message.headers["by"]))  # type: ignore[union-attr]

    async with started(app):
        await app.publish(21, f"{queue}-1")
        assert await seen.wait() == [(42, b"k", "double")]


@in_event_loop
async def test_a_batch_publisher_sends_each_item(app: OttlaBroker, queue: str) -> None:
    seen = Seen(2)

    @app.subscriber(f"{queue}-1")
    @app.publisher(f"{queue}-2", batch=True)
    async def split(body: str) -> tuple[str, ...]:
        return tuple(body.split())

    @app.subscriber(f"{queue}-2")
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish("a b", f"{queue}-1")
        assert await seen.wait() == ["a", "b"]


@in_event_loop
async def test_a_reply_goes_to_the_topic_of_the_message(app: OttlaBroker, queue: str) -> None:
    seen = Seen(1)

    @app.subscriber(f"{queue}-1")
    async def answer(body: str) -> str:
        return body.upper()

    @app.subscriber(f"{queue}-2")
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish("hello", f"{queue}-1", reply_to=f"{queue}-2")
        assert await seen.wait() == ["HELLO"]


@in_event_loop
async def test_a_tombstone_has_no_value(app: OttlaBroker, queue: str) -> None:
    async with started(app):
        await app.publish(None, queue, key=b"k")
        subscriber = app.subscriber(queue, persistent=False, auto_offset_reset="earliest")
        await subscriber.start()
        message = await subscriber.get_one(timeout=SECONDS)
        assert message is not None
        assert message.raw_message.value is None  # type: ignore[union-attr]
        await subscriber.stop()


@in_event_loop
async def test_get_one_and_iteration_return_messages_in_order(app: OttlaBroker, queue: str) -> None:
    async with started(app):
        subscriber = app.subscriber(queue, persistent=False, auto_offset_reset="earliest")
        await subscriber.start()
        assert await subscriber.get_one(timeout=0.01) is None
        for number in range(4):
            await app.publish(number, queue)
        first = await subscriber.get_one(timeout=SECONDS)
        assert first is not None
        assert await first.decode() == 0
        later = []
        async for message in subscriber:
            later.append(await message.decode())
            if len(later) == 3:
                break
        assert later == [1, 2, 3]
        await subscriber.stop()


@pytest.mark.parametrize("policy", [AckPolicy.ACK, AckPolicy.NACK_ON_ERROR, AckPolicy.MANUAL])
@in_event_loop
async def test_a_message_is_committed_after_the_function(
    app: OttlaBroker, broker: Broker, queue: str, policy: AckPolicy
) -> None:
    begun, go_on = Seen(1), asyncio.Event()

    @app.subscriber(queue, group_id=queue, ack_policy=policy, auto_offset_reset="earliest")
    async def handle(body: str, message: KafkaMessage) -> None:
        begun.add(body)
        await go_on.wait()
        if policy is AckPolicy.MANUAL:
            await message.ack()

    async with started(app):
        await app.publish("1", queue)
        await begun.wait()
        assert committed(broker, queue, queue) == -1
        go_on.set()
        await asyncio.to_thread(eventually, lambda: committed(broker, queue, queue) == 1)


@in_event_loop
async def test_the_newer_group_protocol_is_a_setting(broker: Broker, queue: str) -> None:
    app, seen = new_app(broker, consumer_settings={"group.protocol": "consumer"}), Seen(1)

    @app.subscriber(queue, group_id=queue, ack_policy=AckPolicy.ACK, auto_offset_reset="earliest")
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish("1", queue)
        assert await seen.wait() == ["1"]
        with Admin(broker.client_settings()) as admin:
            assert admin.describe_consumer_groups([queue])[queue].type.lower() == "consumer"


@in_event_loop
async def test_nack_on_error_repeats_the_message(app: OttlaBroker, broker: Broker, queue: str) -> None:
    seen = Seen(3)

    @app.subscriber(queue, group_id=queue, ack_policy=AckPolicy.NACK_ON_ERROR, auto_offset_reset="earliest")
    async def handle(body: str) -> None:
        seen.add(body)
        if len(seen.found) == 1:
            raise ConnectionError("at first")

    async with started(app):
        await app.publish("1", queue)
        await app.publish("2", queue)
        assert await seen.wait() == ["1", "1", "2"]
        await asyncio.to_thread(eventually, lambda: committed(broker, queue, queue) == 2)


@in_event_loop
async def test_ack_first_commits_periodically_and_at_the_end(app: OttlaBroker, broker: Broker, queue: str) -> None:
    seen = Seen(2)

    @app.subscriber(queue, group_id=queue, auto_commit_interval_ms=100, auto_offset_reset="earliest")
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish("1", queue)
        await asyncio.to_thread(eventually, lambda: committed(broker, queue, queue) == 1)
        await app.publish("2", queue)
        await seen.wait()
    assert committed(broker, queue, queue) == 2


@in_event_loop
async def test_what_was_buffered_but_not_processed_is_received_after_a_restart(broker: Broker, queue: str) -> None:
    first, begun, never = new_app(broker), Seen(1), asyncio.Event()

    @first.subscriber(queue, group_id=queue, ack_policy=AckPolicy.ACK, auto_offset_reset="earliest")
    async def stop_at_three(body: int) -> None:
        if body == 3:
            begun.add(body)
            await never.wait()

    async with started(first):
        for number in range(10):
            await first.publish(number, queue)
        await begun.wait()
        await asyncio.to_thread(eventually, lambda: committed(broker, queue, queue) == 3)
        first.config.broker_config.graceful_timeout = 0.0
    second, seen = new_app(broker), Seen(7)

    @second.subscriber(queue, group_id=queue, ack_policy=AckPolicy.ACK, auto_offset_reset="earliest")
    async def handle(body: int) -> None:
        seen.add(body)

    async with started(second):
        assert await seen.wait() == [3, 4, 5, 6, 7, 8, 9]


@in_event_loop
async def test_members_of_a_group_share_the_partitions(broker: Broker, queue: str) -> None:
    seen = Seen(40)
    receivers: set[str] = set()
    apps = [new_app(broker), new_app(broker)]
    await create(apps[0], queue, partitions=4)

    def subscribe(app: OttlaBroker, name: str) -> None:
        @app.subscriber(queue, group_id=queue, ack_policy=AckPolicy.ACK, auto_offset_reset="earliest")
        async def handle(body: int) -> None:
            receivers.add(name)
            seen.add(body)

    for app, name in zip(apps, "ab", strict=True):
        subscribe(app, name)
    async with started(apps[0]), started(apps[1]):
        await asyncio.to_thread(eventually, lambda: has_two_members(broker, queue))
        for number in range(40):
            await apps[0].publish(number, queue, partition=number % 4)
        assert set(await seen.wait()) == set(range(40))
        assert receivers == {"a", "b"}


def has_two_members(broker: Broker, group: str) -> bool:
    with Admin(broker.client_settings()) as admin:
        found = admin.describe_consumer_groups([group])[group]
    return found.state == "Stable" and [len(each.assignment) for each in found.members] == [2, 2]


@pytest.mark.parametrize("policy", [AckPolicy.ACK_FIRST, AckPolicy.ACK])
@in_event_loop
async def test_max_workers_run_at_the_same_time(app: OttlaBroker, queue: str, policy: AckPolicy) -> None:
    together = asyncio.Barrier(2)
    seen = Seen(2)
    await create(app, queue, partitions=2)

    @app.subscriber(
        Topic(queue, num_partitions=2), group_id=queue, max_workers=2, ack_policy=policy, auto_offset_reset="earliest"
    )
    async def handle(body: str) -> None:
        await together.wait()
        seen.add(body)

    async with started(app):
        await app.publish("1", queue, partition=0)
        await app.publish("2", queue, partition=1)
        assert sorted(await seen.wait()) == ["1", "2"]


@in_event_loop
async def test_a_slow_function_stays_in_the_group_and_memory_is_bounded(app: OttlaBroker, queue: str) -> None:
    seen = Seen(50)
    sizes: set[int] = set()

    @app.subscriber(queue, group_id=queue, ack_policy=AckPolicy.ACK, max_poll_records=5, auto_offset_reset="earliest")
    async def handle(body: int) -> None:
        consumer: Any = subscriber.consumer
        sizes.add(len(consumer._buffer))
        seen.add(body)

    subscriber: Any = app.subscribers[0]
    async with app:
        await create(app, queue)
        await app.publish_batch(*range(50), topic=queue)
        async with asyncio.timeout(SECONDS):
            await app.start()
            assert await seen.wait() == list(range(50))
    assert max(sizes) < 10


@in_event_loop
async def test_middlewares_and_parsers_are_called(broker: Broker, queue: str) -> None:
    calls: list[str] = []
    seen = Seen(1)

    class Recorder(BaseMiddleware):
        async def on_receive(self) -> None:
            calls.append(f"received {self.msg.offset}")  # type: ignore[union-attr]

        async def publish_scope(self, call_next: Any, cmd: Any) -> Any:
            calls.append(f"published {cmd.body}")
            return await call_next(cmd)

    async def decode(message: KafkaMessage, original: Any) -> Any:
        return (await original(message)) + "!"

    app = new_app(broker, middlewares=[Recorder], decoder=decode)

    @app.subscriber(queue)
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish("hello", queue)
        assert await seen.wait() == ["hello!"]
    assert calls == ["published hello", "received 0"]


@in_event_loop
async def test_filters_choose_between_functions(app: OttlaBroker, queue: str) -> None:
    seen = Seen(2)
    subscriber = app.subscriber(queue)

    @subscriber(filter=lambda message: message.content_type == "application/json")
    async def handle_json(body: dict[str, int]) -> None:
        seen.add(body)

    @subscriber
    async def handle(body: str) -> None:
        seen.add(body)

    async with started(app):
        await app.publish({"a": 1}, queue)
        await app.publish("text", queue)
        assert await seen.wait() == [{"a": 1}, "text"]


@in_event_loop
async def test_routers_and_routes_have_a_prefix(app: OttlaBroker, queue: str) -> None:
    seen = Seen(1)

    async def shout(body: str) -> str:
        return body.upper()

    router = OttlaRouter(prefix=f"{queue}-", handlers=(OttlaRoute(shout, "in", publishers=(OttlaPublisher("out"),)),))

    @router.subscriber("out")
    async def handle(body: str) -> None:
        seen.add(body)

    app.include_router(router)
    async with started(app):
        await app.publish("hello", f"{queue}-in")
        assert await seen.wait() == ["HELLO"]


@in_event_loop
async def test_a_rebalance_listener_hears_of_partitions(app: OttlaBroker, queue: str) -> None:
    from aiokafka import ConsumerRebalanceListener

    changes: list[tuple[str, list[tuple[str, int]]]] = []

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Any) -> None:
            changes.append(("assigned", sorted(assigned)))

        def on_partitions_revoked(self, revoked: Any) -> None:
            changes.append(("revoked", sorted(revoked)))

    @app.subscriber(queue, group_id=queue, listener=Listener())
    async def handle(body: str) -> None: ...

    async with started(app):
        pass
    assert changes == [("assigned", [(queue, 0)]), ("revoked", [(queue, 0)])]


@in_event_loop
async def test_an_error_of_a_listener_is_raised_by_the_next_call(broker: Broker, queue: str) -> None:
    class Listener:
        async def on_partitions_assigned(self, assigned: Any) -> None:
            raise LookupError("by the listener")

        async def on_partitions_revoked(self, revoked: Any) -> None: ...

    app = new_app(broker)
    async with started(app):
        await create(app, queue)
        consumer = app._consumer_builder()(group_id=queue, auto_offset_reset="earliest")
        consumer.subscribe(topics=[queue], listener=Listener())
        await consumer.start()
        with pytest.raises(LookupError, match="by the listener"):
            await consumer.getone()
        await consumer.stop()


@in_event_loop
async def test_the_consumer_of_a_message_seeks_pauses_and_queries(app: OttlaBroker, broker: Broker, queue: str) -> None:
    async with started(app):
        for number in range(5):
            await app.publish(number, queue)
        subscriber = app.subscriber(
            queue, group_id=queue, ack_policy=AckPolicy.MANUAL, persistent=False, auto_offset_reset="earliest"
        )
        await subscriber.start()
        consumer: Any = subscriber.consumer
        place = (queue, 0)
        assert [each.offset for each in (await consumer.getmany(timeout_ms=10_000, max_records=2))[place]] == [0, 1]
        assert await consumer.position(place) == 2
        await consumer.commit()
        assert await consumer.committed(place) == 2
        await consumer.commit({place: 1})
        assert committed(broker, queue, queue) == 1
        consumer.seek(place, 4)
        assert (await consumer.getone()).offset == 4
        await consumer.seek_to_beginning()
        assert (await consumer.getone()).offset == 0
        consumer.pause(place)
        assert consumer.paused() == {place}
        assert await consumer.getmany(timeout_ms=10) == {}
        consumer.resume(place)
        assert (await consumer.getone()).offset == 1
        assert await consumer.end_offsets([place]) == {place: 5}
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.assignment() == {place}
        assert consumer.subscription() == {queue}
        assert queue in await consumer.topics()
        await subscriber.stop()
        with pytest.raises(ConsumerStoppedError):
            await consumer.getone()


@in_event_loop
async def test_a_commit_without_a_group_is_an_error(app: OttlaBroker, queue: str) -> None:
    async with started(app):
        subscriber = app.subscriber(queue, persistent=False)
        await subscriber.start()
        consumer: Any = subscriber.consumer
        with pytest.raises(IllegalOperation, match="group_id"):
            await consumer.commit()
        await subscriber.stop()


@in_event_loop
async def test_ping_and_consumer_only(broker: Broker, queue: str) -> None:
    app = new_app(broker)
    assert not await app.ping(0.01)
    async with started(app):
        assert await app.ping(SECONDS)
    reader = new_app(broker, consumer_only=True)
    async with started(reader):
        with pytest.raises(IncorrectState):
            await reader.publish("1", queue)


@in_event_loop
async def test_a_record_that_is_too_large_raises_the_error_of_aiokafka(broker: Broker, queue: str) -> None:
    app = new_app(broker, max_request_size=1000)
    async with started(app):
        with pytest.raises(KafkaError):
            await app.publish(b"x" * 2000, queue)


@in_event_loop
async def test_the_test_broker_needs_no_brokers() -> None:
    app = OttlaBroker("127.0.0.1:1")
    received: list[str] = []

    @app.subscriber("in")
    @app.publisher("out")
    async def shout(body: str) -> str:
        received.append(body)
        return body.upper()

    publisher = app.publisher("unread")
    async with TestOttlaBroker(app) as tested:
        await tested.publish("hello", "in")
        await publisher.publish("x")
        assert await (await tested.request("again", "in")).decode() == "AGAIN"
        with pytest.raises(SubscriberNotFound):
            await tested.request("hello", "other")
        shout.mock.assert_called_with("again")
    assert received == ["hello", "again"]


@in_event_loop
async def test_the_test_broker_can_connect(broker: Broker, queue: str) -> None:
    app = new_app(broker)

    @app.subscriber(queue)
    async def handle(body: str) -> None: ...

    async with TestOttlaBroker(app, with_real=True) as tested:
        await tested.publish("hello", queue)
        await handle.wait_call(SECONDS)
        handle.mock.assert_called_once_with("hello")


@in_event_loop
async def test_settings_of_ottla_are_given_to_its_clients(broker: Broker, queue: str) -> None:
    app = new_app(
        broker,
        settings={"metadata.max.age.ms": 1234},
        consumer_settings={"fetch_min_bytes": 7},
        producer_settings={"compression.type": "zstd"},
    )
    async with started(app):
        subscriber = app.subscriber(queue, persistent=False)
        await subscriber.start()
        consumer: Any = subscriber.consumer
        settings = consumer._consumer.config
        assert (settings.metadata_max_age_ms, settings.fetch_min_bytes) == (1234, 7)
        await subscriber.stop()


def test_addresses_without_a_port_get_the_default_one() -> None:
    assert add_ports("a, b:1") == ["a:9092", "b:1"]
    assert add_ports(["[::1]", "[::1]:5"]) == ["[::1]:9092", "[::1]:5"]


def test_a_token_provider_of_aiokafka_is_refused() -> None:
    class Provider:
        async def token(self) -> str:
            return "t"

    with pytest.raises(ConfigError, match="milliseconds since 1970"):
        OttlaBroker(
            "127.0.0.1:1", security=SASLOAuthBearer(), sasl_oauth_token_provider=Provider()
        )._consumer_builder()()


@pytest.mark.parametrize("missing", ["aiokafka", "faststream"])
def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [name for name in sys.modules if name.startswith("ottla.faststream")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "faststream":
        monkeypatch.setitem(sys.modules, "faststream.kafka", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ottla\[faststream\]'"):
        importlib.import_module("ottla.faststream")
