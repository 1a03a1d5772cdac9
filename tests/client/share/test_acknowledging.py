"""When a share consumer sends its acknowledgements, with a real broker: a fetch brings the records of several polls."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla import AcknowledgeType, Admin, Broker, NewTopic, Producer, ShareConsumer
from ottla.client.admin import ConfigResource
from ottla.client.share import share_fetcher
from ottla.model import FOREVER
from ottla.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.protocol.messages.share_fetch import ShareFetchRequest
from tests.patience import PATIENCE

RECORDS = 40


@contextmanager
def consumer_of_one_batch(**settings: Any) -> Iterator[tuple[ShareConsumer[Any, Any], list[Any]]]:
    """Yield a consumer that gets ten records of a batch in each poll, and its requests so far."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1)])
        admin.alter_configs({ConfigResource("group", "g"): {"share.auto.offset.reset": "earliest"}})
        with Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
            for _ in range(RECORDS):
                producer.send("t", b"v")
        with ShareConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="g", max_poll_records=10, **settings
        ) as consumer:
            sent: list[Any] = []
            send = consumer._core.client.send

            def record(node: Any, message: Any, **options: Any) -> Any:
                if isinstance(message, ShareFetchRequest | ShareAcknowledgeRequest):
                    sent.append(message)
                return send(node, message, **options)

            consumer._core.client.send = record  # type: ignore[method-assign]
            consumer.subscribe(["t"])
            yield consumer, sent


def acknowledged(request: Any) -> list[tuple[int, int, list[int]]]:
    """Return the ranges of offsets that a request acknowledges, with their types."""
    return [
        (batch.first_offset, batch.last_offset, list(batch.acknowledge_types))
        for topic in request.topics
        for partition in topic.partitions
        for batch in partition.acknowledgement_batches
    ]


def wait_for_response(consumer: ShareConsumer[Any, Any]) -> None:
    """Wait until the consumer has something to receive, and leave it unread."""
    assert select.select([consumer._core.client.client.fileno()], [], [], PATIENCE)[0]


def test_acknowledgements_of_quick_polls_go_with_the_next_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_fetcher, "ACKNOWLEDGE_SECONDS", FOREVER)
    with consumer_of_one_batch() as (consumer, sent):
        assert len(consumer.poll(PATIENCE)) == 10
        requests_before = len(sent)
        assert [len(consumer.poll()) for _ in range(3)] == [10, 10, 10]
        assert len(sent) == requests_before
        assert not consumer.poll(0)
        assert isinstance(sent[-1], ShareFetchRequest)
        assert acknowledged(sent[-1]) == [(0, RECORDS - 1, [AcknowledgeType.ACCEPT])]


def test_acknowledgements_of_slow_polls_are_sent_by_each_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that returns buffered records receives the response to the request before, so that it can send the next one."""
    monkeypatch.setattr(share_fetcher, "ACKNOWLEDGE_SECONDS", 0)
    with consumer_of_one_batch() as (consumer, sent):
        assert len(consumer.poll(PATIENCE)) == 10
        requests_before = len(sent)
        for _ in range(2):
            assert len(consumer.poll()) == 10
            wait_for_response(consumer)
        later = sent[requests_before:]
        assert all(isinstance(each, ShareAcknowledgeRequest) for each in later)
        accept = [AcknowledgeType.ACCEPT]
        assert [acknowledged(each) for each in later] == [[(0, 9, accept)], [(10, 19, accept)]]


def test_commit_async_does_not_wait_for_the_next_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_fetcher, "ACKNOWLEDGE_SECONDS", FOREVER)
    with consumer_of_one_batch() as (consumer, sent):
        assert len(consumer.poll(PATIENCE)) == 10
        consumer.commit_async()
        assert acknowledged(sent[-1]) == [(0, 9, [AcknowledgeType.ACCEPT])]


def test_renewals_do_not_wait_for_the_next_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_fetcher, "ACKNOWLEDGE_SECONDS", FOREVER)
    with consumer_of_one_batch(share_acknowledgement_mode="explicit") as (consumer, sent):
        for record in consumer.acquire(PATIENCE):
            consumer.acknowledge(record, AcknowledgeType.RENEW)
        assert len(consumer.acquire()) == 10
        assert acknowledged(sent[-1]) == [(0, 9, [AcknowledgeType.RENEW])]
