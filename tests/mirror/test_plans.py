"""Changes that a target needs, the topics to mirror, and the estimated remaining time."""

from __future__ import annotations

import pytest

from ottla.copy_progress import CopyProgress
from ottla.errors import ConfigError
from ottla.mirror.group_plan import plan_group
from ottla.mirror.ledger import Ledger, LedgerEntry
from ottla.mirror.selection import Selection
from ottla.mirror.topic_plan import TopicShape, plan_topics
from ottla.model import TopicPartition


def test_a_missing_topic_is_created_with_its_configs_except_those_of_a_cluster() -> None:
    shape = TopicShape(3, {"retention.ms": "5", "min.insync.replicas": "2", "message.timestamp.type": "LogAppendTime"})
    plan = plan_topics({"orders": shape}, {}, lambda name: "west." + name)
    assert plan == ({"west.orders": TopicShape(3, {"retention.ms": "5"})}, {}, {})


def test_a_topic_gets_partitions_and_configs_and_loses_none() -> None:
    there = {"a": TopicShape(1, {"retention.ms": "1", "segment.ms": "9"}), "b": TopicShape(9, {})}
    source = {"a": TopicShape(2, {"retention.ms": "5"}), "b": TopicShape(3, {})}
    assert plan_topics(source, there, str) == ({}, {"a": 2}, {"a": {"retention.ms": "5"}})
    assert plan_topics(source, there, str, with_configs=False) == ({}, {"a": 2}, {})


def test_patterns_match_whole_names_and_mirrored_topics_are_left_out() -> None:
    names = ["orders", "orders-old", "payments", "ottla.mirror.x", "west.orders"]
    assert Selection(("orders.*", "pay"), ("orders-old",)).of_topics(names) == ["orders"]
    assert Selection(prefix="west.").of_topics(names) == ["orders", "orders-old", "payments"]
    assert Selection(without_groups=("b.*",)).of_groups(["a", "billing"]) == ["a"]
    with pytest.raises(ConfigError, match=r"invalid pattern '\('"):
        Selection(("(",))


def test_group_offsets_move_forward_only_and_only_within_the_mirrored_range() -> None:
    ledger = Ledger()
    ledger.add(TopicPartition("orders", 0), LedgerEntry(1, 0, 10, 100, 110, 10))
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
    progress = CopyProgress("copied", 0.0)
    progress.add(1000, 1.0)
    assert progress.report(500, 1.0).text == "1,000 records copied, 1,000/s, 500 remaining, 0:00 left"
    progress.add(0, 30.0)
    progress.add(100, 40.0)
    report = progress.report(2000, 40.0)
    assert (report.records, report.rate, report.seconds_left) == (1100, 10.0, 200.0)
    assert progress.report(0, 40.0).seconds_left == 0.0
    assert CopyProgress("copied", 0.0).report(9, 5.0).text == "0 records copied, 0/s, 9 remaining"
