"""Connections cut in the middle of requests and answers, and brokers and producers killed: nothing lost, nothing twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla import Admin, Broker, NewTopic, Producer
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.errors import OttlaError, TransactionAbortableError
from tests.client.cutting_proxy import CuttingProxy
from tests.client.producer.test_transactions import committed, stable_end
from tests.client.test_failures import Victim

pytestmark = pytest.mark.heavy

HASTE: dict[str, Any] = {
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "linger_ms": 1,
}


@pytest.fixture(params=[False, True], ids=["version 1", "version 2"])
def v2(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(TransactionSender, "_is_v2", lambda *_: False)
    return bool(request.param)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[CuttingProxy]:
    """Forty cuts before a broker that has no other address."""
    proxy = CuttingProxy(cuts=40, most_bytes=3_000, random=Random(7))
    with Broker(tmp_path, advertised_listeners=proxy.address) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        proxy.target = host, int(port)
        yield proxy
    proxy.close()


def send_rows(producer: Producer, first: int, count: int) -> list[Any]:
    """Records with the numbers from `first` on, one by one."""
    return [producer.send("t", b"%d" % number) for number in range(first, first + count)]


def send_columns(producer: Producer, first: int, count: int) -> list[Any]:
    """The same as a table."""
    pa = pytest.importorskip("pyarrow")
    return [producer.send_table("t", pa.table({"value": [b"%d" % n for n in range(first, first + count)]}))]


@pytest.mark.behaviour("P6", "P10")
@pytest.mark.parametrize("send", [send_rows, send_columns])
def test_records_resent_over_broken_connections_are_written_once_and_in_order(
    proxy: CuttingProxy, send: Callable[[Producer, int, int], list[Any]]
) -> None:
    with Producer(bootstrap_servers=proxy.address, batch_size=500, max_request_size=2_000, **HASTE) as producer:
        sent = [future for first in range(0, 6000, 200) for future in send(producer, first, 200)]
        producer.flush(60)
        for future in sent:
            future.result(0)
    assert proxy.left < 20, "it was cut often"
    proxy.left = 0
    assert committed(proxy.address, "t") == [b"%d" % number for number in range(6000)]


@pytest.mark.behaviour("P10")
def test_without_idempotence_each_record_is_written_at_least_once(proxy: CuttingProxy) -> None:
    settings = {**HASTE, "batch_size": 500, "max_request_size": 2_000, "enable_idempotence": False}
    with Producer(bootstrap_servers=proxy.address, **settings) as producer:
        futures = send_rows(producer, 0, 6000)
        producer.flush(60)
        assert [future.exception(0) for future in futures if future.exception(0)] == []
    assert proxy.left < 20, "it was cut often"
    proxy.left = 0
    seen = committed(proxy.address, "t")
    assert set(seen) == {b"%d" % number for number in range(6000)}
    assert len(seen) > 6000, "what was written and not heard of is there twice"


@pytest.mark.behaviour("P10")
def test_with_acks_0_each_record_is_written_at_most_once(proxy: CuttingProxy) -> None:
    with Producer(bootstrap_servers=proxy.address, batch_size=500, acks=0, **HASTE) as producer:
        for first in range(0, 6000, 200):
            send_rows(producer, first, 200)
            producer.flush(60)
    assert proxy.left < 30, "it was cut often"
    proxy.left = 0
    seen = [int(value) for value in committed(proxy.address, "t")]
    assert len(seen) == len(set(seen)), "nothing is there twice"
    assert 0 < len(seen) < 6000, "what was on its way when the connection was cut is lost"


@pytest.mark.behaviour("P7", "P10")
def test_transactions_over_broken_connections_are_committed_once_or_not_at_all(proxy: CuttingProxy, v2: bool) -> None:
    kept: list[bytes] = []
    with Producer(bootstrap_servers=proxy.address, transactional_id="tx", batch_size=200, **HASTE) as producer:
        producer.init_transactions()
        for number in range(60):
            values = [b"%d-%d" % (number, index) for index in range(20)]
            producer.begin_transaction()
            for value in values:
                producer.send("t", value)
            if number % 3:
                producer.commit_transaction()
                kept += values
            else:
                producer.abort_transaction()
    assert proxy.left < 20, "it was cut often"
    proxy.left = 0
    assert committed(proxy.address, "t") == kept


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    broker = Victim(tmp_path)
    with Admin(bootstrap_servers=broker.listen) as admin:
        admin.create_topics([NewTopic("t", 1, 1)])
    yield broker
    broker.broker.close()


@pytest.mark.behaviour("P6", "P10")
def test_records_sent_while_the_broker_is_killed_and_restarted_arrive_exactly_once_and_in_order(victim: Victim) -> None:
    with Producer(bootstrap_servers=victim.listen, batch_size=500, **HASTE) as producer:
        futures = send_rows(producer, 0, 3000)
        futures[100].result(20)
        victim.kill()
        futures += send_rows(producer, 3000, 3000)
        victim.start()
        producer.flush(60)
        assert [future.exception(0) for future in futures if future.exception(0)] == []
    assert committed(victim.listen, "t") == [b"%d" % number for number in range(6000)]


STATES = ["initializing", "begun", "written", "committing", "aborting"]


@pytest.mark.behaviour("P7", "P10")
def test_a_broker_killed_in_any_state_of_a_transaction_restores_it(victim: Victim, v2: bool) -> None:
    def restart() -> None:
        victim.kill()
        victim.start()

    with Producer(bootstrap_servers=victim.listen, transactional_id="tx", **HASTE) as producer:
        restart()
        producer.init_transactions()
        producer.begin_transaction()
        restart()
        producer.send("t", b"kept")
        producer.flush(30)
        restart()
        producer.send("t", b"kept too")
        restart()
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("t", b"dropped").result(30)
        restart()
        producer.abort_transaction()
        with producer.transaction():
            producer.send("t", b"kept at last")
    assert committed(victim.listen, "t") == [b"kept", b"kept too", b"kept at last"]


PROGRAM = """
import os, signal, sys
from ottla import Producer
producer = Producer(bootstrap_servers=sys.argv[1], transactional_id="tx")
die = lambda now: now == sys.argv[2] and os.kill(os.getpid(), signal.SIGKILL)
producer.init_transactions()
die("initializing")
with producer.transaction(): producer.send("t", b"before")
producer.begin_transaction()
die("begun")
producer.send("t", b"maybe").result(20)
die("written")
if sys.argv[2] == "aborting":
    producer._core.transactions.machine.abort_transaction(); die("aborting")
producer._core.transactions.machine.commit_transaction(); die("committing")
"""


@pytest.mark.behaviour("P7", "P10")
@pytest.mark.parametrize("state", STATES)
def test_a_producer_killed_in_any_state_leaves_no_open_transaction_after_its_successor_starts(
    tmp_path: Path, state: str
) -> None:
    with Broker(tmp_path) as broker:
        servers = broker.bootstrap_servers
        died = subprocess.run([sys.executable, "-c", PROGRAM, servers, state], check=False, timeout=60)
        assert died.returncode == -signal.SIGKILL
        with Producer(bootstrap_servers=servers, transactional_id="tx") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("t", b"after")
        seen = committed(servers, "t")
        before = [] if state == "initializing" else [b"before"]
        assert seen in ([*before, b"after"], *([[*before, b"maybe", b"after"]] if state == "committing" else []))


@pytest.mark.behaviour("P7", "P10")
def test_two_producers_with_one_id_fence_each_other_and_the_fenced_one_commits_nothing(
    tmp_path: Path, v2: bool
) -> None:
    kept: list[bytes] = []
    with Broker(tmp_path) as broker:
        servers = broker.bootstrap_servers
        producers = [Producer(bootstrap_servers=servers, transactional_id="tx", **HASTE) for _ in range(6)]
        for number, producer in enumerate(producers):
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"%d" % number).result(20)
            if number % 2:
                producer.commit_transaction()
                kept.append(b"%d" % number)
        for producer in producers[::2]:
            with pytest.raises(OttlaError):
                producer.commit_transaction()
        for producer in producers:
            producer.close(5)
        assert committed(servers, "t") == kept
        assert stable_end(servers, "t") == 12, "six records, each with its marker"


def test_closing_does_not_wait_forever_for_a_stopped_broker(victim: Victim, caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer(bootstrap_servers=victim.listen, transactional_id="tx", **HASTE, max_block_ms=5_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"v").result(20)
    victim.kill()
    object.__setattr__(producer.config, "max_block_ms", 200)
    producer.close()
    assert "closed with an open transaction" in caplog.text


@pytest.mark.behaviour("P7")
def test_a_record_lost_to_its_delivery_timeout_makes_the_transaction_abortable(victim: Victim, v2: bool) -> None:
    settings = {**HASTE, "request_timeout_ms": 300, "delivery_timeout_ms": 400}
    with Producer(bootstrap_servers=victim.listen, transactional_id="tx", **settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"written").result(20)
        victim.kill()
        producer.send("t", b"lost")
        with pytest.raises(TransactionAbortableError, match=r"delivery\.timeout\.ms"):
            producer.commit_transaction()
        victim.start()
        producer.abort_transaction()
        with producer.transaction():
            producer.send("t", b"next")
    assert committed(victim.listen, "t") == [b"next"]
