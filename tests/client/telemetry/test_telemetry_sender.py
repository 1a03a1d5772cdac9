"""The target and the timing of pushes: first with a fake selector, then with a broker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla import Admin, Broker, Consumer, Producer, aio
from ottla.broker.event_loop.loop_call import call_in_loop
from ottla.broker.introspection.pushed_metrics_page import build_page, format_page
from ottla.client.admin import ConfigResource
from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.runtime.steps import Steps
from ottla.errors import IllegalStateError, KafkaTimeoutError, UnsupportedVersionError
from ottla.free_ports import free_port
from ottla.kafka_id import text_of
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.client.network.test_network_client import NODE, Story
from tests.patience import PATIENCE, eventually

ID = UUID(int=7)
WANTED = GetTelemetrySubscriptionsResponse(
    client_instance_id=ID, push_interval_ms=60_000, telemetry_max_bytes=1000, requested_metrics=["*"]
)
SENT = "kafka_client_telemetry_producer_record_send"
"""The names in the broker's metrics, where the page appends `_total`."""


class TelemetryStory(Story):
    """A client with a short push interval and without metrics."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.answers[GetTelemetrySubscriptionsRequest] = WANTED
        self.answers[PushTelemetryRequest] = PushTelemetryResponse()
        self.client.telemetry.enable(lambda _: ClientMetrics({}))

    def asked(self) -> list[tuple[object, str]]:
        """Requests about metrics, by node."""
        kinds = (GetTelemetrySubscriptionsRequest, PushTelemetryRequest)
        return [
            (node, "last" if getattr(request, "terminating", False) else type(request).__name__.partition("Tele")[0])
            for node, _, request in self.selector.requests
            if isinstance(request, kinds)
        ]


def test_a_client_requests_its_subscription_once_a_broker_is_ready_and_pushes_at_the_interval() -> None:
    story = TelemetryStory()
    story.connect()
    story.poll(2, timeout=0)
    assert story.asked() == [(1, "Get")]
    begun = story.now
    while len(story.asked()) < 4:
        story.poll(timeout=1000)
    assert story.asked()[1:] == [(1, "Push")] * 3
    assert begun + 150 <= story.now <= begun + 210, "half an interval to one and a half, and then two"


def test_no_connection_is_opened_to_push() -> None:
    story = TelemetryStory()
    story.poll(10, timeout=0.1)
    assert not story.client.is_ready(NODE.node_id, story.now)
    assert story.asked() == []


def test_a_broker_without_telemetry_gets_no_request() -> None:
    story = TelemetryStory()
    story.api_versions = [each for each in story.api_versions if each.api_key != GetTelemetrySubscriptionsRequest.KEY]
    story.connect()
    story.poll(20, timeout=60)
    assert story.asked() == []
    story.api_versions.append(ApiVersion(api_key=GetTelemetrySubscriptionsRequest.KEY, min_version=0, max_version=0))
    story.client.disconnect(NODE.node_id, "it begins anew, with a page of metrics")
    story.connect()
    story.poll(20, timeout=60)
    assert story.asked()[0] == (1, "Get")


def test_a_waiter_for_an_instance_id_gets_an_error_at_once_if_there_is_none() -> None:
    story = TelemetryStory()
    story.api_versions = [each for each in story.api_versions if each.api_key != GetTelemetrySubscriptionsRequest.KEY]
    begun = story.now
    steps = story.client.telemetry.client_instance_id(story.client, 60)
    with pytest.raises(UnsupportedVersionError, match="does not accept client metrics"):
        done(story, steps)
    assert story.now == begun


def done(story: Story, steps: Steps[Any]) -> None:
    for span in steps:
        story.client.poll(span)


def test_a_client_that_was_not_started_sends_no_telemetry() -> None:
    story = TelemetryStory()
    other = Story()
    other.answers = story.answers
    other.connect()
    other.poll(20, timeout=60)
    assert not [request for _, _, request in other.selector.requests if isinstance(request, PushTelemetryRequest)]


def test_a_client_imports_telemetry_only_after_a_broker_subscribes_to_metrics() -> None:
    program = "import sys; from ottla import Admin, Consumer, Producer; from ottla.client.network.network_client import NetworkClient; "
    loaded = program + "print([name for name in sys.modules if 'client_telemetry' in name or 'metrics_data' in name])"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True).stdout == b"[]\n"


def test_failing_metrics_do_not_affect_the_client_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    story = TelemetryStory()
    story.client.telemetry.enable(lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    story.connect()
    story.poll(20, timeout=60)
    story.client.finish()
    assert story.asked() == [(1, "Get")]
    assert [record.getMessage() for record in caplog.records if "metrics" in record.getMessage()] == [
        "telemetry stopped: the metrics could not be collected or encoded"
    ]


def test_an_idle_client_that_pushes_does_not_spin() -> None:
    story = TelemetryStory()
    story.connect()
    story.poll(40, timeout=60)
    assert story.now > 900


def test_the_end_waits_for_the_last_push_and_not_for_long() -> None:
    story = TelemetryStory()
    story.connect()
    story.poll(2, timeout=0)
    story.client.finish()
    assert story.asked()[-1] == (1, "last")
    assert story.client.closed
    silent = TelemetryStory()
    silent.answers[PushTelemetryRequest] = None
    silent.connect()
    silent.poll(2, timeout=0)
    begun = silent.now
    silent.client.finish()
    assert silent.asked()[-1] == (1, "last")
    assert silent.now - begun == pytest.approx(0.1)


@pytest.mark.parametrize("hurried", [False, True])
def test_closing_a_client_without_subscriptions_does_not_wait(hurried: bool) -> None:
    story = TelemetryStory()
    story.answers[GetTelemetrySubscriptionsRequest] = WANTED if hurried else GetTelemetrySubscriptionsResponse()
    story.connect()
    story.poll(2, timeout=0)
    begun = story.now
    story.client.finish(hurried=hurried)
    assert (story.now, story.client.closed) == (begun, True)
    assert story.asked() == [(1, "Get")]


def test_after_a_lost_push_the_subscription_is_requested_later() -> None:
    story = TelemetryStory()
    story.connect()
    story.poll(2, timeout=0)
    story.answers[PushTelemetryRequest] = None
    while len(story.asked()) < 2:
        story.poll(timeout=1000)
    story.selector.end(1, "the peer reset the connection")
    story.poll()
    lost_at = story.now
    story.clock.advance(1)
    story.connect()
    while len(story.asked()) < 3:
        story.poll(timeout=1000)
    assert story.asked() == [(1, "Get"), (1, "Push"), (1, "Get")]
    assert story.now - lost_at == pytest.approx(60, abs=2)


# With a broker.


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker that subscribes to all metrics at a short interval."""
    with Broker(metrics_listen="127.0.0.1:0") as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_configs({ConfigResource("client-metrics", "all"): {"metrics": "*", "interval.ms": 100}})
        yield broker


def pushed(broker: Broker, metric: str, client_id: str) -> dict[str, float]:
    """Return the metrics that the instances of one client pushed, by their ids, with summed labels."""
    server = broker.server
    assert server is not None
    node = server.node

    text = format_page(
        call_in_loop(server.call_soon, lambda: build_page(node.telemetry.list_metrics(node.clock.monotonic())), 60)
    )
    reported: dict[str, float] = {}
    for each in text_string_to_metric_families(text):
        for sample in each.samples if each.name == metric else ():
            if sample.labels["client_id"] == client_id:
                instance_id = sample.labels["client_instance_id"]
                reported[instance_id] = reported.get(instance_id, 0.0) + sample.value
    return reported


@pytest.mark.behaviour("B8")
def test_the_broker_sums_the_counts_of_a_producer(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers, client_id="hands") as producer:
        for count in (5, 8):
            for _ in range(5 if count == 5 else 3):
                producer.send("orders", b"tea").result(60)
            eventually(lambda: [*pushed(broker, SENT, "hands").values()] == [count])  # noqa: B023
        reported = producer.client_instance_id()
        assert [*pushed(broker, SENT, "hands")] == [text_of(reported)]
        assert producer.client_instance_id(0) == reported


def test_a_consumer_pushes_during_poll_with_its_group_as_a_label(broker: Broker) -> None:
    polls = "kafka_client_telemetry_consumer_request"
    with Consumer(bootstrap_servers=broker.bootstrap_servers, client_id="eyes", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        reported = text_of(consumer.client_instance_id())
        eventually(lambda: (consumer.poll(0.01), pushed(broker, polls, "eyes").get(reported))[1])
        assert consumer._core.labels()["group_id"] == "billing"


def test_an_admin_pushes_during_its_calls(broker: Broker) -> None:
    requests = "kafka_client_telemetry_admin_client_request"
    with Admin(bootstrap_servers=broker.bootstrap_servers, client_id="office") as admin:
        reported = text_of(admin.client_instance_id())
        eventually(lambda: (admin.list_topics(), pushed(broker, requests, "office").get(reported))[1])


def test_awaited_clients_push_as_well(broker: Broker) -> None:
    async def work() -> None:
        at = broker.bootstrap_servers
        async with (
            aio.Producer(bootstrap_servers=at, client_id="aio-hands") as producer,
            aio.Consumer(bootstrap_servers=at, client_id="aio-eyes") as consumer,
            aio.Admin(bootstrap_servers=at, client_id="aio-office") as admin,
        ):
            ids = [await producer.client_instance_id(), await consumer.client_instance_id()]
            assert len({*ids, await admin.client_instance_id()}) == 3
            await (await producer.send("orders", b"tea"))
            names = {"aio-hands": SENT, "aio-eyes": "kafka_client_telemetry_consumer_request"}
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while not all(pushed(broker, metric, client_id) for client_id, metric in names.items()):
                assert asyncio.get_running_loop().time() < deadline
                await admin.list_topics()

    asyncio.run(work())


def test_a_client_that_may_not_push_has_no_id(broker: Broker) -> None:
    with (
        Producer(bootstrap_servers=broker.bootstrap_servers, enable_metrics_push=False) as producer,
        pytest.raises(IllegalStateError, match=r"enable\.metrics\.push = false"),
    ):
        producer.client_instance_id()


def test_a_broker_without_a_page_gives_no_ids() -> None:
    with (
        Broker() as silent,
        Admin(bootstrap_servers=silent.bootstrap_servers) as admin,
        pytest.raises(UnsupportedVersionError, match="does not accept client metrics"),
    ):
        admin.client_instance_id()


def test_an_instance_id_timeout_names_the_brokers() -> None:
    with (
        Consumer(bootstrap_servers=f"127.0.0.1:{free_port()}") as consumer,
        pytest.raises(KafkaTimeoutError, match=r"no client instance id received within 0\.01 s: 127\.0\.0\.1"),
    ):
        consumer.client_instance_id(0.01)
