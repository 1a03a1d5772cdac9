"""The broker's settings under Kafka's names."""

from __future__ import annotations

import pytest

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.config import options_of
from ottla.coordination.cluster.topic_configs import find_fault
from ottla.errors import ConfigError


def test_dotted_names_and_keywords_are_the_same_settings() -> None:
    assert read_config({"num.partitions": "3"}) == read_config(num_partitions=3)


def test_every_setting_has_a_description() -> None:
    assert all(option.doc for option in options_of(BrokerConfig))


def test_a_topic_config_overrides_the_broker_setting() -> None:
    config = read_config(log_segment_bytes=2_000_000, log_retention_ms=5)
    log = config.log_config({"retention.ms": "7"})
    assert (log.segment_bytes, log.retention_ms) == (2_000_000, 7)


def test_every_default_of_a_topic_config_is_a_valid_value() -> None:
    assert {name: find_fault(name, value) for name, value in BrokerConfig().topic_defaults().items()} == dict.fromkeys(
        BrokerConfig().topic_defaults()
    )


@pytest.mark.parametrize("name", ["offsets.topic.segment.bytes", "transaction.state.log.segment.bytes"])
def test_a_segment_size_below_the_minimum_of_topics_is_rejected_at_startup(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}.*1048576"):
        read_config({name: "1048575"})
