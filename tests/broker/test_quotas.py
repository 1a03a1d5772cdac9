"""Quotas: clients above them are throttled and their connections are not read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin
from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.admin import ClientQuotaEntity
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.broker.wire import Wire, batch, fetch, produce

BIG = bytes(200_000)
TINY = 1000.0
"""Bytes per second; one request of this test exceeds it by years."""


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def limit(admin: Admin, entity: ClientQuotaEntity, **values: float | None) -> None:
    admin.alter_client_quotas({entity: values})


GREEDY = ClientQuotaEntity(client_id="greedy")


def is_silent(wire: Wire) -> bool:
    """True if a request gets no response for a while; it stays pending."""
    wire.send(ApiVersionsRequest("a", "1"), 3)
    wire.socket.settimeout(0.5)
    try:
        wire.receive_frame()
    except TimeoutError:
        return True
    finally:
        wire.socket.settimeout(20)
    return False


def test_quotas_are_described_as_set_and_persist_after_a_restart(tmp_path: Path) -> None:
    nobody = ClientQuotaEntity(user="<default>", client_id="c")
    with Broker(tmp_path) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        limit(admin, GREEDY, producer_byte_rate=TINY, request_percentage=12.5)
        limit(admin, nobody, consumer_byte_rate=5e6)
        limit(admin, nobody, producer_byte_rate=None)
    with Broker(tmp_path) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.describe_client_quotas() == {
            GREEDY: {"producer_byte_rate": TINY, "request_percentage": 12.5},
            nobody: {"consumer_byte_rate": 5e6},
        }
        assert admin.describe_client_quotas(GREEDY).keys() == {GREEDY}
        with Wire(broker.bootstrap_servers, "greedy") as wire:
            wire.create("t")
            assert wire.ask(produce("t", batch([BIG])), 11).throttle_time_ms > 100_000


def test_a_producer_above_its_quota_is_throttled_and_others_are_not(broker: Broker, admin: Admin) -> None:
    limit(admin, GREEDY, producer_byte_rate=TINY)
    with Wire(broker.bootstrap_servers, "greedy") as greedy, Wire(broker.bootstrap_servers, "polite") as polite:
        greedy.create("t")
        answer = greedy.ask(produce("t", batch([BIG])), 11)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert answer.throttle_time_ms > 100_000
        assert is_silent(greedy)
        assert polite.ask(produce("t", batch([BIG])), 11).throttle_time_ms == 0
        assert not is_silent(polite)


def test_a_consumer_above_its_quota_is_throttled(broker: Broker, admin: Admin) -> None:
    with Wire(broker.bootstrap_servers, "greedy") as greedy:
        greedy.create("t")
        greedy.produce("t", BIG)
        limit(admin, GREEDY, consumer_byte_rate=TINY)
        answer = greedy.ask(fetch("t"), 12)
        assert answer.throttle_time_ms > 10_000
        assert is_silent(greedy)


def test_a_producer_with_acks_0_is_throttled(broker: Broker, admin: Admin) -> None:
    limit(admin, GREEDY, producer_byte_rate=TINY)
    with Wire(broker.bootstrap_servers, "greedy") as greedy:
        greedy.create("t")
        greedy.send(produce("t", batch([BIG]), acks=0), 11)
        assert is_silent(greedy)


def test_a_client_above_its_request_quota_is_throttled_for_a_second_at_most(broker: Broker, admin: Admin) -> None:
    limit(admin, GREEDY, request_percentage=0.0001)
    with Wire(broker.bootstrap_servers, "greedy") as greedy:
        greedy.create("t")
        assert 0 < greedy.ask(produce("t", batch([BIG])), 11).throttle_time_ms <= 1000
        assert greedy.ask(produce("t", batch([BIG])), 11).throttle_time_ms <= 1000


def test_a_removed_quota_has_no_effect(broker: Broker, admin: Admin) -> None:
    limit(admin, GREEDY, producer_byte_rate=TINY)
    limit(admin, GREEDY, producer_byte_rate=None)
    with Wire(broker.bootstrap_servers, "greedy") as greedy:
        greedy.create("t")
        assert greedy.ask(produce("t", batch([BIG])), 11).throttle_time_ms == 0
    assert admin.describe_client_quotas() == {}


def test_a_client_above_its_mutation_quota_is_rejected_or_throttled(broker: Broker, admin: Admin) -> None:
    limit(admin, GREEDY, controller_mutation_rate=1.0)
    with Wire(broker.bootstrap_servers, "greedy") as greedy:
        first = greedy.ask(CreateTopicsRequest([CreatableTopic("a", 30, 1), CreatableTopic("b", 1, 1)]), 6)
        assert [each.error_code for each in first.topics] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert first.throttle_time_ms > 10_000
    with Wire(broker.bootstrap_servers, "greedy") as older:
        answer = older.ask(CreateTopicsRequest([CreatableTopic("c", 1, 1)]), 5)
        assert answer.topics[0].error_code == 0
        assert answer.throttle_time_ms > 10_000


def test_connections_above_the_rate_of_their_address_wait_and_are_closed(broker: Broker, admin: Admin) -> None:
    with Wire(broker.bootstrap_servers) as first:
        limit(admin, ClientQuotaEntity(ip="127.0.0.1"), connection_creation_rate=1)
        sent_away = 0
        for _ in range(15):
            with Wire(broker.bootstrap_servers) as wire:
                try:
                    wire.ask(ApiVersionsRequest("a", "1"), 3)
                except (EOFError, OSError):
                    sent_away += 1
                    break
        assert sent_away
        assert first.ask(ApiVersionsRequest("a", "1"), 3).error_code == 0


def test_a_broker_stops_at_once_although_clients_are_throttled() -> None:
    with Broker() as broker, Wire(broker.bootstrap_servers, "greedy") as greedy:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            limit(admin, GREEDY, producer_byte_rate=TINY)
        greedy.create("t")
        greedy.produce("t", BIG)
        began = time.monotonic()
    assert time.monotonic() - began < 20


def test_an_invalid_quota_is_an_error_with_its_remedy(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="producer_byte_rate = 0: must be above 0"):
        limit(admin, GREEDY, producer_byte_rate=0)
    with pytest.raises(ValueError, match="write ClientQuotaEntity"):
        limit(admin, ClientQuotaEntity(), producer_byte_rate=1)
