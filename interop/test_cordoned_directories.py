"""`kafka-configs` cordons the directories of a running node of ours, and opens them again (KIP-1066)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interop.kafka_tools import Tools
from ottla import Admin, Cluster, NewTopic
from ottla.errors import ErrorCode, KafkaError
from rivals.kafka_cluster import wait_for

CORDONED = 3
CONFIG = ("--entity-type", "brokers", "--entity-name", CORDONED)


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def test_a_cordoned_node_gets_no_new_partitions_until_it_is_opened_again(tools: Tools) -> None:
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:

        def change(*words: object) -> None:
            at = ("--bootstrap-server", cluster.bootstrap_servers)
            changed = tools.run("ConfigCommand", *at, "--alter", *CONFIG, *words)
            assert changed.status == 0, changed.text

        def nodes_of(name: str) -> set[int]:
            admin.create_topics([NewTopic(name, 6, 1)])
            wait_for(lambda: name in admin.list_topics(), f"{name} exists")
            return {node for each in admin.describe_topics([name])[name].partitions for node in each.replicas}

        def is_cordoned() -> bool:
            try:
                admin.create_topics([NewTopic("tried", replica_assignments={0: (CORDONED,)})])
            except KafkaError as error:
                return error.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            admin.delete_topics(["tried"])
            return False

        assert nodes_of("before") == {1, 2, 3}
        change("--add-config", "cordoned.log.dirs=*")
        wait_for(is_cordoned, "the controllers know it")
        assert nodes_of("meanwhile") == {1, 2}
        change("--delete-config", "cordoned.log.dirs")
        wait_for(lambda: not is_cordoned(), "it is open again")
        assert nodes_of("after") == {1, 2, 3}
