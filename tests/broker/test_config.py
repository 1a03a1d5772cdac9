"""The broker's settings under Kafka's names."""

from __future__ import annotations

import pytest

from ottla.broker.config import BrokerConfig, parse_address, read_config
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


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9092", ("127.0.0.1", 9092)),
        ("PLAINTEXT://0.0.0.0:0", ("0.0.0.0", 0)),
        ("plaintext://:9092", ("", 9092)),
        ("[::1]:9092", ("::1", 9092)),
    ],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert parse_address("listeners", text) == address


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "localhost:x", "a:70000", "SSL://a:1", "a:1,b:2", "a:²"]
)
def test_what_is_no_address_is_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^listeners = "):
        parse_address("listeners", text)
