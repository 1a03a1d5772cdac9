"""For tests of programs that use Kafka: a broker in the test's own process, and what one asks of it.

    [tool.pytest.ini_options]                      # in pyproject.toml
    addopts = "-p ottla.testing"

    def test_orders_are_billed(ottla_topic, ottla_producer):
        ottla_producer.send(ottla_topic, value=b"order 1")
        assert_records(ottla_topic, ["order 1"])

The broker is Kafka for any client: hand `ottla_broker.bootstrap_servers` to confluent-kafka, kafka-python, aiokafka or Spark.
"""

from __future__ import annotations

from ottla.testing.records import assert_records
from ottla.testing.topic import Topic

pytest_plugins = ("ottla.testing.plugin",)
"""Read by pytest where this package is named as a plugin, by `-p ottla.testing`."""

__all__ = ["Topic", "assert_records"]
