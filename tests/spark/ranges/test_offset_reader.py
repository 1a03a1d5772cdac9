"""Topics selected by a pattern on a broker."""

from __future__ import annotations

import logging

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, TopicPartition
from ottla.spark.options import read_source_options
from ottla.spark.ranges.offset_reader import OffsetReader, none_matches


def test_a_pattern_that_matches_no_topic_is_logged_once_and_later_topics_are_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("totals", 1, 1)])
        asked = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribePattern": "ord.*"}
        with OffsetReader(read_source_options(asked)) as reader, caplog.at_level(logging.WARNING):
            assert [reader.topics() for _ in range(3)] == [set()] * 3
            (line,) = [each.getMessage() for each in caplog.records if each.name.startswith("ottla.spark")]
            admin.create_topics([NewTopic("orders", 1, 1)])
            assert reader.topics() == {"orders"}
    assert "option subscribePattern = ord.*: no topic at" in line
    assert "matches, of 1 that this user can see; correct it, or grant the user DESCRIBE on the topics" in line


def test_a_user_that_sees_no_topic_is_reported() -> None:
    asked = read_source_options({"kafka.bootstrap.servers": "b:9092", "subscribePattern": "a"})
    assert "no topic at b:9092 matches, because this user can see none; " in none_matches(asked, 0)


def test_a_pattern_leaves_out_the_topics_of_kafka_itself() -> None:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 1, 1)])
        with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
            consumer.commit({TopicPartition("orders", 0): 0})
        assert "__consumer_offsets" in admin.list_topics(internal=True)
        asked = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribePattern": ".*"}
        with OffsetReader(read_source_options(asked)) as reader:
            assert reader.topics() == {"orders"}
            assert reader.is_excluded(TopicPartition("__consumer_offsets", 0))
        with OffsetReader(read_source_options(asked | {"kafka.exclude.internal.topics": "false"})) as reader:
            assert reader.topics() == {"orders", "__consumer_offsets"}
            assert not reader.is_excluded(TopicPartition("__consumer_offsets", 0))
        by_name = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "__consumer_offsets"}
        with OffsetReader(read_source_options(by_name)) as reader:
            assert reader.topics() == {"__consumer_offsets"}
