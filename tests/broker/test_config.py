"""The broker's settings under Kafka's names."""

from __future__ import annotations

import pytest

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.config import options_of
from ottla.coordination.cluster.topic_configs import fault_of
from ottla.errors import ConfigError


def test_dotted_names_and_keywords_are_the_same_settings() -> None:
    assert read_config({"num.partitions": "3"}) == read_config(num_partitions=3)


def test_every_setting_has_a_text() -> None:
    assert all(option.doc for option in options_of(BrokerConfig))


def test_a_topic_overrides_what_the_broker_says() -> None:
    config = read_config(log_segment_bytes=2_000_000, log_retention_ms=5)
    log = config.log_config({"retention.ms": "7"})
    assert (log.segment_bytes, log.retention_ms) == (2_000_000, 7)


def test_every_default_of_a_topic_is_a_value_that_a_topic_may_have() -> None:
    assert {name: fault_of(name, value) for name, value in BrokerConfig().topic_defaults().items()} == dict.fromkeys(
        BrokerConfig().topic_defaults()
    )


@pytest.mark.parametrize("name", ["offsets.topic.segment.bytes", "transaction.state.log.segment.bytes"])
def test_a_size_that_no_topic_may_have_is_refused_before_no_group_works_for_it(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}.*1048576"):
        read_config({name: "1048575"})
