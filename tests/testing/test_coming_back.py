"""Restarts of a broker, and removed members."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ottla import Admin, Consumer, Producer
from ottla.errors import ConfigError, IllegalStateError
from ottla.testing import Topic, assert_records
from ottla.testing.broker import TestedBroker
from tests.patience import eventually

DEADLINE = 60.0


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def mortal(request: pytest.FixtureRequest) -> Iterator[TestedBroker]:
    with TestedBroker(process=request.param) as broker:
        yield broker


def test_acknowledged_records_survive_a_crash_and_a_restart_on_the_same_port(mortal: TestedBroker) -> None:
    address, topic = mortal.bootstrap_servers, Topic("orders", mortal.client_settings())
    with Producer(mortal.client_settings(), retry_backoff_max_ms=50, reconnect_backoff_max_ms=50) as producer:
        producer.send(topic, b"1").result(DEADLINE)
        mortal.crash()
        assert not mortal.is_running
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
        late = producer.send(topic, b"2")
        mortal.start()
        late.result(DEADLINE)
        mortal.restart()
        producer.send(topic, b"3").result(DEADLINE)
    assert mortal.bootstrap_servers == address
    assert_records(topic, ["1", "2", "3"], timeout=DEADLINE)


def test_a_crash_closes_nothing_in_order_and_a_restart_does(topic: Topic, broker: TestedBroker) -> None:
    def was_clean() -> bool:
        assert broker.server is not None
        return broker.server._directory.was_clean_shutdown

    broker.restart()
    assert was_clean()
    broker.crash()
    broker.start()
    assert not was_clean()


def test_a_shared_broker_restarts_empty_on_its_port_after_a_close() -> None:
    with TestedBroker() as broker:
        broker.is_shared = True
        address = broker.bootstrap_servers
        with Producer(broker.client_settings()) as producer:
            producer.send("orders", b"1").result(DEADLINE)
        broker.close()
        assert not broker.is_running
        broker.start()
        with Admin(broker.client_settings()) as admin:
            assert (broker.bootstrap_servers, admin.list_topics()) == (address, {})
        broker.is_shared = False


def test_the_port_of_a_stopped_broker_stays_reserved() -> None:
    with TestedBroker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        broker.crash()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with pytest.raises(IllegalStateError, match=r"restart it with start\(\)"):
            broker.crash()


def test_removed_members_of_a_group_rejoin(broker: TestedBroker, topic: Topic) -> None:
    lost: list[object] = []
    settings = {**broker.client_settings(), "group.id": "lost", "heartbeat.interval.ms": 20}
    with Consumer(settings) as consumer:
        consumer.subscribe([str(topic)], on_lost=lost.extend)
        eventually(lambda: consumer.poll(0.01) or consumer.assignment())
        assert broker.expire_sessions("lost") == 1
        eventually(lambda: (consumer.poll(0.01), lost)[1])
        eventually(lambda: consumer.poll(0.01) or consumer.assignment())


def test_an_unknown_group_is_an_error(broker: TestedBroker, topic: Topic) -> None:
    with pytest.raises(ConfigError, match=r"expire_sessions\('nobody'\): .*there is no group 'nobody'"):
        broker.expire_sessions("nobody")
