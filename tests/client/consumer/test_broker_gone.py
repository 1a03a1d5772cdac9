from __future__ import annotations

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, TopicPartition
from ottla.errors import KafkaTimeoutError


def test_an_offset_lookup_after_the_broker_has_died_raises_that_no_broker_answers() -> None:
    here = TopicPartition("t", 0)
    with Broker() as broker, Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)])
        assert consumer.end_offsets([here], timeout=10) == {here: 0}
        address = broker.bootstrap_servers
        broker.close()
        for seconds in (2, 1, 1):
            with pytest.raises(KafkaTimeoutError, match=f"{address}.* connection refused"):
                consumer.end_offsets([here], timeout=seconds)
