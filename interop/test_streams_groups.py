"""Kafka Streams with `group.protocol=streams` on our broker: exact counts although an instance is killed (KIP-1071)."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from interop.streams_application import GROUP, LINES, TOTALS, instance, read_totals, send_words
from ottla import Admin, Broker, Cluster, Consumer, NewTopic, Producer

FAST: dict[str, Any] = {
    "group_streams_initial_rebalance_delay_ms": 0,
    "group_streams_heartbeat_interval_ms": 500,
    "group_streams_min_heartbeat_interval_ms": 500,
    "group_streams_session_timeout_ms": 6000,
    "group_streams_min_session_timeout_ms": 6000,
}
WORDS = [f"w{number % 17}" for number in range(20_000)]


def test_counts_are_exact_although_an_instance_is_killed(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", process=True, **FAST) as broker:
        address = broker.bootstrap_servers
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(LINES, 4), NewTopic(TOTALS, 2)])
        with (
            instance(address, tmp_path / "first") as first,
            instance(address, tmp_path / "second"),
            Producer(bootstrap_servers=address) as producer,
            Consumer(bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed", group_id="reader") as consumer,
        ):  # fmt: skip
            consumer.subscribe([TOTALS])
            totals: dict[str, int] = {}
            send_words(producer, WORDS[: len(WORDS) // 2])
            read_totals(consumer, totals, Counter(WORDS[: len(WORDS) // 2]))
            first.send_signal(signal.SIGKILL)
            send_words(producer, WORDS[len(WORDS) // 2 :])
            read_totals(consumer, totals, Counter(WORDS))


READING = {"group.id": "reader", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
KILLS = 2


def test_counts_are_exact_although_coordinators_are_killed(tmp_path: Path) -> None:
    """The node that coordinates the group is killed while the application counts; another one coordinates then."""
    settings = FAST | {"offsets_topic_num_partitions": 3, "transaction_state_log_num_partitions": 3}
    with Cluster(**settings) as cluster, ExitStack() as undo:
        at = cluster.client_settings()
        admin = undo.enter_context(Admin(at))
        admin.create_topics([NewTopic(LINES, 4, 3), NewTopic(TOTALS, 2, 3)])
        for name in ("first", "second"):
            undo.enter_context(instance(cluster.bootstrap_servers, tmp_path / name))
        producer = undo.enter_context(Producer(at | {"acks": "all"}))
        consumer = undo.enter_context(Consumer(at | READING))
        consumer.subscribe([TOTALS])
        totals: dict[str, int] = {}
        send_words(producer, WORDS[:4000])
        read_totals(consumer, totals, Counter(WORDS[:4000]))
        for kill in range(1, KILLS + 1):
            coordinator = admin.describe_streams_groups([GROUP])[GROUP].coordinator.node_id
            cluster.kill(coordinator)
            words = WORDS[: 4000 * (kill + 1)]
            send_words(producer, words[4000 * kill :])
            read_totals(consumer, totals, Counter(words))
            group = admin.describe_streams_groups([GROUP])[GROUP]
            assert group.coordinator.node_id != coordinator
            assert group.members
            cluster.start(coordinator)
