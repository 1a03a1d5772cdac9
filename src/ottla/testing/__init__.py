"""For tests of programs that use Kafka: a broker in the test's own process, and what one asks of it.

    pytest_plugins = ["ottla.testing.plugin"]      # in conftest.py

    def test_orders_are_billed(ottla_topic, ottla_producer):
        ottla_producer.send(ottla_topic, value=b"order 1")
        assert_records(ottla_topic, ["order 1"])

The broker is Kafka for any client: hand `ottla_broker.bootstrap_servers` to confluent-kafka, kafka-python, aiokafka or Spark.
"""

from __future__ import annotations

from ottla.testing.records import assert_records
from ottla.testing.topic import Topic

__all__ = ["Topic", "assert_records"]
