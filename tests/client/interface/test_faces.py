"""The names, settings and error messages of the clients."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla import Admin, Consumer, ConsumerRecords, Producer, errors
from ottla.client.admin.config import AdminConfig
from ottla.client.config.synonyms import NEEDLESS, RENAMED
from ottla.client.consumer.config import ConsumerConfig, read_consumer_settings
from ottla.client.producer.config import ProducerConfig, read_producer_settings
from ottla.client.runtime.future import Future
from ottla.config import options_of
from ottla.errors import ConfigError

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("module", [ottla, ottla.aio], ids=lambda module: module.__name__)
def test_dir_lists_the_public_names_only(module: Any) -> None:
    shown = {name for name in dir(module) if not name.startswith("__")}
    assert shown == set(module.__all__) - {"__version__"}
    assert all(getattr(module, name) is not None for name in shown)


def test_every_error_can_be_caught_by_its_name_in_ottla() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OttlaError)]
    assert len(kinds) > 20
    for kind in kinds:
        assert getattr(ottla, kind.__name__) is kind


def test_the_repr_of_a_client_identifies_it() -> None:
    with Producer(bootstrap_servers=NOWHERE, client_id="p") as producer:
        assert repr(producer) == f"ottla.Producer(client_id='p', bootstrap_servers='{NOWHERE}')"
    assert repr(producer) == f"ottla.Producer(client_id='p', bootstrap_servers='{NOWHERE}', closed)"
    with Consumer(bootstrap_servers=NOWHERE, client_id="c", group_id="g") as consumer:
        consumer.assign([ottla.TopicPartition("t", 0)])
        wanted = f"ottla.Consumer(client_id='c', bootstrap_servers='{NOWHERE}', group_id='g', 1 partitions assigned)"
        assert repr(consumer) == wanted
    with Admin(bootstrap_servers=[NOWHERE, "other"], client_id="a") as admin:
        assert repr(admin) == f"ottla.Admin(client_id='a', bootstrap_servers='{NOWHERE},other')"
    assert repr(admin).endswith(", closed)")
    assert repr(ConsumerRecords()) == "ConsumerRecords(0 records)"


def test_the_repr_of_an_asyncio_client_identifies_it() -> None:
    async def story() -> None:
        async with ottla.aio.Producer(bootstrap_servers=NOWHERE, client_id="p") as producer:
            assert repr(producer) == f"ottla.aio.Producer(client_id='p', bootstrap_servers='{NOWHERE}')"
        assert repr(producer).endswith(", closed)")
        async with ottla.aio.Consumer(bootstrap_servers=NOWHERE, client_id="c") as consumer:
            assert repr(consumer).startswith("ottla.aio.Consumer(client_id='c', ")

    asyncio.run(story())


def test_the_repr_of_a_future_shows_its_state(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=10_000) as producer:
        future = producer.send(topic, b"v")
        assert repr(future) == f"RecordFuture({topic!r}, partition=0, pending)"
        producer.flush(20)
        assert repr(future) == f"RecordFuture({topic!r}, partition=0, {future.result(0)!r})"
    plain: Future[int] = Future()
    assert repr(plain) == "Future(pending)"
    plain.set_result(3)
    assert repr(plain) == "Future(3)"


@pytest.mark.parametrize(
    ("read", "name", "advice"),
    [
        (read_producer_settings, "message.timeout.ms", "'delivery.timeout.ms'"),
        (read_producer_settings, "queue_buffering_max_ms", "'linger_ms'"),
        (read_producer_settings, "compression.codec", "'compression.type'"),
        (read_producer_settings, "max_batch_size", "'batch_size'"),
        (read_producer_settings, "on_delivery", "give each send its on_delivery"),
        (read_consumer_settings, "fetch.wait.max.ms", "'fetch.max.wait.ms'"),
        (read_consumer_settings, "consumer_timeout_ms", r"give poll\(\) a timeout"),
        (read_consumer_settings, "api.version.request", "leave it out"),
    ],
)
def test_names_of_other_clients_are_errors_that_suggest_ours(read: Any, name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting '{name}': .*{advice}"):
        read({"bootstrap.servers": "a"}, {name: "1"})


def test_the_suggestions_name_existing_settings() -> None:
    ours = {option.name for kind in (ProducerConfig, ConsumerConfig, AdminConfig) for option in options_of(kind)}
    assert ours.issuperset(RENAMED.values())
    assert ours.isdisjoint([*RENAMED, *NEEDLESS])


@pytest.mark.parametrize("read", [read_producer_settings, read_consumer_settings])
def test_settings_without_effect_are_accepted(read: Any) -> None:
    config = read(
        {
            "bootstrap.servers": "a",
            "enable.metrics.push": "false",
            "auto.include.jmx.reporter": "true",
            "metrics.num.samples": "3",
            "metrics.sample.window.ms": "1000",
            "metrics.recording.level": "debug",
            "metric.reporters": "",
            "receive.buffer.bytes": "65536",
            "send.buffer.bytes": "131072",
        },
        {},
    )
    assert (config.enable_metrics_push, config.receive_buffer_bytes, config.send_buffer_bytes) == (False, 65536, 131072)
    with pytest.raises(ConfigError, match=r"metric\.reporters"):
        read({"bootstrap.servers": "a", "metric.reporters": "com.example.Mine"}, {})


def test_the_sizes_of_a_sockets_buffers_are_what_was_set(servers: str) -> None:
    with Admin(bootstrap_servers=servers, receive_buffer_bytes=20_000, send_buffer_bytes=30_000) as admin:
        admin.list_topics()
        channels = admin._driver.client.client._selector._channels.values()
        sizes = {
            (
                channel.open_socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
                channel.open_socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            )
            for channel in channels
        }
    assert sizes == {(40_000, 60_000)}  # Linux doubles them for its own needs


@pytest.mark.parametrize("kind", [Consumer, Producer, Admin, ottla.aio.Consumer, ottla.aio.Producer])
def test_a_topic_instead_of_settings_gets_the_call_that_was_meant(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"subscribe\(\['flights'\]\)"):
        kind("flights")


def test_a_pattern_as_a_name_gets_the_pattern_that_was_meant() -> None:
    with (
        Consumer(bootstrap_servers=NOWHERE, group_id="g") as consumer,
        pytest.raises(ValueError, match=r"subscribe\(re\.compile\('a\.\*'\)\)"),
    ):
        consumer.subscribe(["^a.*"])


class Acknowledged:
    """Callbacks with the parameter order of another client."""

    def by_method(self, err: Any, msg: Any) -> None:
        raise AssertionError

    def __call__(self, err: Any, msg: Any) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    "callback", [lambda err, msg: None, Acknowledged().by_method, Acknowledged()], ids=["function", "method", "object"]
)
def test_a_callback_with_swapped_parameters_is_rejected(servers: str, topic: str, callback: Any) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for _ in range(2):
            with pytest.raises(TypeError, match=r"\(metadata, error\).*\(err, msg\); swap them"):
                producer.send(topic, b"v", on_delivery=callback)
        with pytest.raises(TypeError, match="must be a function"):
            producer.send(topic, b"v", on_delivery=7)  # type: ignore[arg-type]
        producer.send(topic, b"v", on_delivery=lambda metadata, error: None).result(20)


def test_importing_ottla_still_loads_nothing() -> None:
    script = "import sys, ottla; dir(ottla); assert 'asyncio' not in sys.modules and 'ottla.errors' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
