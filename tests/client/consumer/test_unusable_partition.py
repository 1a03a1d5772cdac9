"""A partition whose leader cannot use it: who asks for its offsets is told so, and not ten times a second."""

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


def test_a_consumer_that_does_not_know_where_to_begin_says_why_once(
    broker: TestedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "ottla.client.consumer"),
        Consumer(broker.client_settings(), auto_offset_reset="earliest") as consumer,
        broker.faults.fail("ListOffsets", error="UNKNOWN_SERVER_ERROR") as fault,
    ):
        consumer.assign([PARTITION])
        eventually(lambda: consumer.poll(0.05) or fault.happened >= 5)
    (told,) = (each for each in caplog.messages if "start position" in each)
    assert told.endswith("the log of that broker says why")


@pytest.mark.parametrize("which", ["begins", "ends"])
def test_whoever_asks_for_an_end_of_it_is_told_why_there_is_none(broker: TestedBroker, which: str) -> None:
    with (
        Consumer(broker.client_settings()) as consumer,
        broker.faults.fail("ListOffsets", error="UNKNOWN_SERVER_ERROR"),
    ):
        ask = consumer.beginning_offsets if which == "begins" else consumer.end_offsets
        with pytest.raises(
            KafkaError, match=f"at which t-0 {which} cannot be looked up: its leader cannot use the partition"
        ):
            ask([PARTITION])
