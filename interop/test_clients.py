"""Each client reads the records of each client, with every codec, from either broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import pytest

from interop.clients import CLIENTS, CODECS, OURS
from interop.conftest import NewTopicName
from interop.rows import ROWS

Written = Callable[[str, str, str], str]
WITH_US = [pair for pair in product(CLIENTS, CLIENTS) if {*pair} & {*OURS}]
"""Producer and consumer. Pairs of two foreign clients at a foreign broker are not tested."""


@pytest.fixture(scope="session")
def written(fresh_topic: NewTopicName) -> Written:
    """Return a function that fills a topic with a producer and codec at an address, once for each combination."""

    @cache
    def write(address: str, producer: str, codec: str) -> str:
        topic = fresh_topic(address)
        CLIENTS[producer].produce(address, topic, ROWS, codec)
        return topic

    return write


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("consumer", CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("producer", CLIENTS)
def test_ottlas_broker_carries_records_between_any_two_clients(
    ottla_broker: str, written: Written, producer: str, codec: str, consumer: str
) -> None:
    topic = written(ottla_broker, producer, codec)
    assert CLIENTS[consumer].consume(ottla_broker, topic, len(ROWS)) == list(ROWS)


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("producer", "consumer"), WITH_US)
def test_apache_kafka_carries_records_from_and_to_our_clients(
    apache_kafka: str, written: Written, producer: str, codec: str, consumer: str
) -> None:
    topic = written(apache_kafka, producer, codec)
    assert CLIENTS[consumer].consume(apache_kafka, topic, len(ROWS)) == list(ROWS)
