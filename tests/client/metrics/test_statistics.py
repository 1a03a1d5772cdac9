"""The user's function is called with the metrics at an interval."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from ottla import Broker, Consumer, Producer, aio
from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.metrics.statistics import Statistics
from ottla.errors import ConfigError
from ottla.model import FOREVER
from tests.patience import eventually

NONE = ClientMetrics({})


def test_statistics_are_emitted_when_the_interval_is_over_and_not_before() -> None:
    reported: list[ClientMetrics] = []
    statistics = Statistics(2000, reported.append, 10.0)
    assert (statistics.report_if_due(11.5, lambda: NONE), reported) == (0.5, [])
    assert (statistics.report_if_due(12.0, lambda: NONE), reported) == (2.0, [NONE])
    assert (statistics.report_if_due(19.0, lambda: NONE), len(reported)) == (2.0, 2)


@pytest.mark.parametrize(("interval_ms", "tell"), [(0, print), (50, None)])
def test_without_an_interval_or_a_function_there_is_nothing_to_wait_for(interval_ms: int, tell: object) -> None:
    assert Statistics(interval_ms, tell, 0.0).report_if_due(1e9, lambda: NONE) == FOREVER  # type: ignore[arg-type]


def test_a_function_that_fails_is_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    statistics = Statistics(1000, lambda reported: 1 / 0, 0.0)
    with caplog.at_level(logging.ERROR, "ottla"):
        assert statistics.report_if_due(1.0, lambda: NONE) == 1.0
    assert "on.statistics raised function=" in caplog.text


def test_a_consumer_emits_statistics_in_poll_on_the_polling_thread() -> None:
    threads: list[threading.Thread] = []

    def on_statistics(metrics: ClientMetrics) -> None:
        assert metrics.value("last-poll-seconds-ago") >= 0
        threads.append(threading.current_thread())

    with Broker() as broker:
        settings = broker.client_settings() | {"group.id": "g", "statistics.interval.ms": 20}
        with Consumer(settings, on_statistics=on_statistics) as consumer:
            consumer.subscribe(["orders"])
            while len(threads) < 2:
                consumer.poll(0.05)
    assert set(threads) == {threading.current_thread()}


def test_an_idle_producer_emits_statistics_on_its_own_thread() -> None:
    names: list[str] = []
    with (
        Broker() as broker,
        Producer(
            broker.client_settings(),
            statistics_interval_ms=20,
            on_statistics=lambda reported: names.append(threading.current_thread().name),
        ),
    ):
        eventually(lambda: len(names) > 1)
    assert all(name.startswith("ottla-producer-network-thread") for name in names)


def test_asyncio_clients_emit_statistics_in_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    async def work(broker: Broker) -> None:
        heard = asyncio.Event()

        def on_statistics(metrics: ClientMetrics) -> None:
            threads.append(threading.current_thread())
            heard.set()

        settings = broker.client_settings() | {"statistics.interval.ms": 20}
        async with aio.Producer(settings, on_statistics=on_statistics) as producer:
            await (await producer.send("orders", b"tea"))
            await asyncio.wait_for(heard.wait(), 30)
            heard.clear()
        async with aio.Consumer(settings, group_id="g", on_statistics=on_statistics) as consumer:
            consumer.subscribe(["orders"])
            while not heard.is_set():
                await consumer.poll(0.05)

    with Broker() as broker:
        asyncio.run(work(broker))
    assert set(threads) == {threading.current_thread()}


def test_values_that_are_no_functions_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"on.statistics"):
        Producer(bootstrap_servers="127.0.0.1:1", on_statistics="print")  # type: ignore[arg-type]
