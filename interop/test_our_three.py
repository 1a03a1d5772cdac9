"""Foreign transactional clients on three combined nodes of ours, of which one, two or all are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.exactly_once import Stage
from interop.served import ThreeNodes
from interop.test_cluster_replicas import read
from interop.transactor import Transactor
from ottla import Admin, NewTopic
from rivals.apache_kafka import fetch

RECORDS = 3000
TOPICS = ("whole-a", "whole-b", "whole-c")


@pytest.fixture
def three(tmp_path: Path) -> Iterator[ThreeNodes]:
    served = ThreeNodes(tmp_path)
    yield served
    served.close()


@pytest.mark.behaviour("B4")
@pytest.mark.parametrize("client", ["java", "aiokafka"])
def test_records_of_a_foreign_processor_are_there_exactly_once(three: ThreeNodes, client: str) -> None:
    """Without librdkafka 2.16 and kafka-python 3.0.

    If a group coordinator fails, they may wait for it and never look up the new one.
    """
    fetch()
    stage = Stage(three, client, RECORDS)
    try:
        for part, kill in enumerate((three.kill_one, three.stop_one, three.kill_one), 1):
            stage.until(lambda part=part: stage.committed() >= part * RECORDS // 6)  # type: ignore[misc]
            kill(stage.until_more)
        for part, count in ((4, 2), (5, 3)):
            stage.until(lambda part=part: stage.committed() >= part * RECORDS // 6)  # type: ignore[misc]
            three.kill_many(count)
        stage.until(lambda: stage.committed() == RECORDS)
        tally = stage.tally()
        assert (tally.lost, tally.doubled, tally.out_of_order) == (0, 0, 0)
    finally:
        stage.end_processor()


def test_librdkafkas_transactions_over_three_topics_are_atomic(three: ThreeNodes) -> None:
    with Admin(bootstrap_servers=three.address) as admin:
        admin.create_topics([NewTopic(topic, 1) for topic in TOPICS])
    with Transactor(three.address, list(TOPICS), "whole") as transactor:
        transactor.go_on()
        for kill in (three.kill_one, three.stop_one, three.kill_one):
            kill(transactor.go_on)
            transactor.go_on()
        three.kill_many(2)
        transactor.go_on()
    assert not transactor.failed
    for topic in TOPICS:
        assert read(three.address, topic, isolation_level="read_committed") == list(range(transactor.count))
