"""The end of a processor: by a signal, by its own function, or by an exception."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.client.process.stop_signals import SIGNALS, stop_on_signals
from tests.checker.victim import Victim
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import consumer_of, filled, running, settled, upper, values_of

FOREVER_MS = "60000"


@pytest.mark.parametrize(("way", "number"), [("plain", signal.SIGTERM), ("asyncio", signal.SIGINT)])
def test_a_signal_ends_a_processor_after_its_transaction_is_committed(
    tmp_path: Path, way: str, number: signal.Signals
) -> None:
    with Victim(tmp_path) as broker:
        broker.start()
        with ottla.Admin(bootstrap_servers=broker.address) as admin:
            admin.create_topics([ottla.NewTopic("in", 1), ottla.NewTopic("out", 1)])
        filled(broker.address, "in", ["a", "b", "c"])
        command = [sys.executable, "-m", "tests.client.process.worker", broker.address, way, FOREVER_MS]
        path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path) as worker:
            assert worker.stdout is not None
            assert [worker.stdout.readline() for _ in range(3)] == ["0\n", "1\n", "2\n"]
            assert values_of(broker.address, "out") == []
            worker.send_signal(number)
            assert worker.stdout.read() == "ended well\n"
        assert worker.returncode == 0
        assert values_of(broker.address, "out") == [b"a", b"b", b"c"]


def test_handlers_of_signals_are_there_again_when_the_last_processor_has_ended() -> None:
    previous_handlers = [signal.getsignal(number) for number in SIGNALS]
    heard: list[str] = []
    with stop_on_signals(lambda: heard.append("one")):
        with stop_on_signals(lambda: heard.append("two")):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert heard == ["one", "two", "one"]
    assert [signal.getsignal(number) for number in SIGNALS] == previous_handlers


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_function_may_stop_it_and_what_was_read_counts(
    servers: str, new_topic: NewTopicName, exactly_once: bool
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a", "b"])
    stopped: list[ottla.Processor] = []

    def last(record: ottla.ConsumerRecord) -> bytes:
        eventually(lambda: stopped)
        stopped[0].stop()  # during the commit, while no signal handler is installed
        return upper(record)

    how = {"to": target, "exactly_once": exactly_once, "commit_interval_ms": 60_000}
    with running(servers, source, last, **how) as processor:  # type: ignore[arg-type]
        stopped.append(processor)
        eventually(lambda: processor.is_over)
    assert values_of(servers, target) == [b"A", b"B"]
    assert settled(servers, source, source, 2)()


def test_a_coroutine_function_is_refused_by_the_processor_that_blocks(servers: str) -> None:
    async def function(record: object) -> None: ...

    with (
        consumer_of(servers, "g") as consumer,
        ottla.Producer(bootstrap_servers=servers, transactional_id="t") as producer,
        pytest.raises(TypeError, match=r"only ottla\.aio\.process can await it"),
    ):
        ottla.process(consumer, producer, function, topics=["t"])


def test_clients_of_the_wrong_kind_are_rejected(servers: str) -> None:
    with (
        consumer_of(servers, "g") as consumer,
        pytest.raises(TypeError, match=r"is not a ottla\.client\.producer\.producer\.Producer"),
    ):
        ottla.process(consumer, consumer, upper, topics=["t"])  # type: ignore[arg-type]
