"""A partition that its leader cannot use: the error is reported, and not ten times a second."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ottla import Consumer, TopicPartition
from ottla.errors import KafkaError
from ottla.testing.broker import TestedBroker
from tests.patience import eventually

PARTITION = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestedBroker]:
    with TestedBroker() as broker:
        yield broker


def test_a_consumer_without_a_start_position_logs_the_reason_once(
    broker: TestedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "ottla.client.consumer"),
        Consumer(broker.client_settings(), auto_offset_reset="earliest") as consumer,
        broker.faults.fail("ListOffsets", error="UNKNOWN_SERVER_ERROR") as fault,
    ):
        consumer.assign([PARTITION])
        eventually(lambda: consumer.poll(0.05) or fault.happened >= 5)
    (messages,) = (each for each in caplog.messages if "start position" in each)
    assert messages.endswith("see the log of that broker")


@pytest.mark.parametrize("which", ["begins", "ends"])
def test_an_end_offset_lookup_of_an_unusable_partition_raises_the_reason(broker: TestedBroker, which: str) -> None:
    with (
        Consumer(broker.client_settings()) as consumer,
        broker.faults.fail("ListOffsets", error="UNKNOWN_SERVER_ERROR"),
    ):
        ask = consumer.beginning_offsets if which == "begins" else consumer.end_offsets
        with pytest.raises(
            KafkaError, match=f"at which t-0 {which} cannot be looked up: its leader cannot use the partition"
        ):
            ask([PARTITION])
