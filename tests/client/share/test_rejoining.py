"""A share consumer that subscribes again long after it has left its group, with a real broker."""

from __future__ import annotations

import logging

import pytest

from ottla import Admin, Broker, NewTopic, Producer, ShareConsumer
from ottla.client.admin import ConfigResource
from tests.patience import PATIENCE, eventually


def test_a_consumer_that_has_left_joins_again_with_its_next_poll(caplog: pytest.LogCaptureFixture) -> None:
    """Its heartbeat thread waits without a time limit by then, so the poll has to wake it."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1)])
        admin.alter_configs({ConfigResource("group", "g"): {"share.auto.offset.reset": "earliest"}})
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("t", b"v")
        caplog.set_level(logging.DEBUG, "ottla.client.share")
        with ShareConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
            consumer.subscribe(["t"])
            assert len(consumer.poll(PATIENCE)) == 1
            consumer.unsubscribe()
            eventually(lambda: "has left" in caplog.text)
            consumer.subscribe(["t"])
            assert [record.value for record in consumer.poll(PATIENCE)] == [b"v"]
