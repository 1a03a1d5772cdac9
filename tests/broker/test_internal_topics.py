"""The replication factor of the topics of groups and of transactions in a cluster."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.broker.metadata.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    in_cluster,
    make_compacted_topic,
)
from ottla.broker.settings.config import read_config
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.protocol.messages.create_topics import CreatableTopic

DISK = UUID(int=500)


def broker(number: int, *, fenced: bool = False, leaves: bool = False, cordoned: bool = False) -> BrokerRegistration:
    closed = (DISK,) if cordoned else ()
    return BrokerRegistration(number, 1, UUID(int=number), (), (), None, fenced, leaves, (DISK,), closed)


def build_request(name: str, *brokers: BrokerRegistration, **settings: int) -> CreatableTopic:
    config = read_config(settings)
    return in_cluster(make_compacted_topic(name, 50, 1000), config, config.given, brokers)


def least_in_sync(topic: CreatableTopic) -> str | None:
    return {each.name: each.value for each in topic.configs}.get("min.insync.replicas")


@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, TRANSACTION_STATE])
@pytest.mark.parametrize(("there", "copies"), [(0, 1), (1, 1), (2, 2), (3, 3), (5, 3)])
def test_an_internal_topic_gets_three_replicas_or_one_per_broker(name: str, there: int, copies: int) -> None:
    assert build_request(name, *map(broker, range(there))).replication_factor == copies


def test_brokers_with_cordoned_directories_do_not_count() -> None:
    assert build_request(CONSUMER_OFFSETS, broker(1), broker(2, cordoned=True)).replication_factor == 1


@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, TRANSACTION_STATE])
def test_temporarily_fenced_brokers_get_replicas(name: str) -> None:
    brokers = [broker(1), broker(2, fenced=True), broker(3, fenced=True, leaves=True)]
    assert build_request(name, *brokers).replication_factor == 3


def test_a_configured_replication_factor_is_used_regardless_of_the_number_of_brokers() -> None:
    said = {"offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 2}
    assert build_request(CONSUMER_OFFSETS, broker(1), **said).replication_factor == 3
    assert build_request(TRANSACTION_STATE, broker(1), **said).replication_factor == 2


@pytest.mark.parametrize(
    ("there", "said", "least"),
    [
        (3, {}, "2"),
        (2, {}, None),
        (2, {"transaction.state.log.min.isr": 2}, "2"),
        (3, {"transaction.state.log.min.isr": 1}, "1"),
    ],
)
def test_transaction_state_requires_two_of_three_replicas_in_sync(
    there: int, said: dict[str, int], least: str | None
) -> None:
    assert least_in_sync(build_request(TRANSACTION_STATE, *map(broker, range(there)), **said)) == least


def test_of_three_copies_two_must_have_the_state_of_a_share_group() -> None:
    name = SHARE_GROUP_STATE
    assert least_in_sync(build_request(name, *map(broker, range(3)))) == "2"
    assert least_in_sync(build_request(name, *map(broker, range(2)))) is None
    assert build_request(name, *map(broker, range(3))).replication_factor == 3
    assert least_in_sync(build_request(name, broker(1), **{"share.coordinator.state.topic.min.isr": 1})) == "1"


def test_the_offsets_topic_has_the_clusters_min_insync_replicas() -> None:
    assert least_in_sync(build_request(CONSUMER_OFFSETS, *map(broker, range(3)))) is None


def test_other_topics_get_the_default_replication_factor_of_the_cluster() -> None:
    assert in_cluster(CreatableTopic(name="t", num_partitions=-1), read_config(), (), ()).replication_factor == -1
