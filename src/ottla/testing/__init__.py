"""Fixtures and assertions for tests of programs that use Kafka, with a broker in the test's process.

[tool.pytest.ini_options]                      # in pyproject.toml
addopts = "-p ottla.testing"

def test_orders_are_billed(ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, value=b"order 1")
    assert_records(ottla_topic, ["order 1"])

The broker works with any client: pass `ottla_broker.bootstrap_servers` to confluent-kafka, kafka-python, aiokafka or
Spark.
"""

from __future__ import annotations

from ottla.testing.records import assert_records
from ottla.testing.topic import Topic

pytest_plugins = ("ottla.testing.plugin",)
"""Read by pytest if this package is loaded as a plugin by `-p ottla.testing`."""

__all__ = ["Topic", "assert_records"]
