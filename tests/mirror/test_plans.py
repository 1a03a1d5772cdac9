"""What a target lacks, which names are carried, and how long the rest takes."""

from __future__ import annotations

import pytest

from ottla.errors import ConfigError
from ottla.mirror.group_plan import plan_group
from ottla.mirror.ledger import Carried, Ledger
from ottla.mirror.progress import Progress
from ottla.mirror.selection import Selection
from ottla.mirror.topic_plan import TopicShape, plan_topics
from ottla.model import TopicPartition


def test_a_topic_that_is_not_there_is_made_with_its_configs_but_those_of_a_cluster() -> None:
    shape = TopicShape(3, {"retention.ms": "5", "min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"})
    plan = plan_topics({"orders": shape}, {}, lambda name: "west." + name)
    assert plan == ({"west.orders": TopicShape(3, {"retention.ms": "5"})}, {}, {})


def test_a_topic_grows_and_takes_configs_and_nothing_is_taken_from_it() -> None:
    there = {"a": TopicShape(1, {"retention.ms": "1", "segment.ms": "9"}), "b": TopicShape(9, {})}
    source = {"a": TopicShape(2, {"retention.ms": "5"}), "b": TopicShape(3, {})}
    assert plan_topics(source, there, str) == ({}, {"a": 2}, {"a": {"retention.ms": "5"}})
    assert plan_topics(source, there, str, with_configs=False) == ({}, {"a": 2}, {})


def test_patterns_are_of_whole_names_and_what_a_mirror_made_is_left_out() -> None:
    names = ["orders", "orders-old", "payments", "ottla.mirror.x", "west.orders"]
    assert Selection(("orders.*", "pay"), ("orders-old",)).of_topics(names) == ["orders"]
    assert Selection(prefix="west.").of_topics(names) == ["orders", "orders-old", "payments"]
    assert Selection(without_groups=("b.*",)).of_groups(["a", "billing"]) == ["a"]
    with pytest.raises(ConfigError, match=r"'\(' is no pattern of names"):
        Selection(("(",))


def test_a_group_goes_forward_only_and_only_where_the_mirror_has_been() -> None:
    ledger = Ledger()
    ledger.note(TopicPartition("orders", 0), Carried(1, 0, 10, 100, 110, 10))
    committed = {TopicPartition("orders", 0): 4, TopicPartition("orders", 1): 7}
    orders = TopicPartition("orders", 0)
    for there, wanted in (
        ({}, {orders: 104}),
        ({orders: 103}, {orders: 104}),
        ({orders: 104}, {}),
        ({orders: 110}, {}),
    ):
        assert plan_group(committed, there, ledger, lambda tp: 0, str) == (wanted, 0)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    progress = Progress(0.0)
    progress.note(1000, 1.0)
    assert progress.standing(500, 1.0).text == "1,000 records carried, 1,000/s, 500 to go, 0:00 left"
    progress.note(0, 30.0)
    progress.note(100, 40.0)
    standing = progress.standing(2000, 40.0)
    assert (standing.records, standing.rate, standing.seconds_left) == (1100, 10.0, 200.0)
    assert progress.standing(0, 40.0).seconds_left == 0.0
    assert Progress(0.0).standing(9, 5.0).text == "0 records carried, 0/s, 9 to go"
