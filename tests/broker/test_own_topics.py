"""How many copies the topics of groups and of transactions get in a cluster."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, compacted, in_cluster
from ottla.broker.settings.config import read_config
from ottla.coordination.cluster.registration import Registration
from ottla.protocol.messages.create_topics import CreatableTopic

DISK = UUID(int=500)


def broker(number: int, *, fenced: bool = False, leaves: bool = False, cordoned: bool = False) -> Registration:
    closed = (DISK,) if cordoned else ()
    return Registration(number, 1, UUID(int=number), (), (), None, fenced, leaves, (DISK,), closed)


def asked(name: str, *brokers: Registration, **settings: int) -> CreatableTopic:
    config = read_config(settings)
    return in_cluster(compacted(name, 50, 1000), config, config.given, brokers)


def least_in_sync(topic: CreatableTopic) -> str | None:
    return {each.name: each.value for each in topic.configs}.get("min.insync.replicas")


@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, TRANSACTION_STATE])
@pytest.mark.parametrize(("there", "copies"), [(0, 1), (1, 1), (2, 2), (3, 3), (5, 3)])
def test_they_get_three_copies_or_as_many_as_there_are_brokers(name: str, there: int, copies: int) -> None:
    assert asked(name, *map(broker, range(there))).replication_factor == copies


def test_who_takes_nothing_unasked_does_not_count() -> None:
    assert asked(CONSUMER_OFFSETS, broker(1), broker(2, cordoned=True)).replication_factor == 1


@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, TRANSACTION_STATE])
def test_who_is_away_for_a_moment_gets_its_copy(name: str) -> None:
    brokers = [broker(1), broker(2, fenced=True), broker(3, fenced=True, leaves=True)]
    assert asked(name, *brokers).replication_factor == 3


def test_what_somebody_says_is_asked_for_whoever_is_there() -> None:
    said = {"offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 2}
    assert asked(CONSUMER_OFFSETS, broker(1), **said).replication_factor == 3
    assert asked(TRANSACTION_STATE, broker(1), **said).replication_factor == 2


@pytest.mark.parametrize(
    ("there", "said", "least"),
    [
        (3, {}, "2"),
        (2, {}, None),
        (2, {"transaction.state.log.min.isr": 2}, "2"),
        (3, {"transaction.state.log.min.isr": 1}, "1"),
    ],
)
def test_of_three_copies_two_must_have_the_state_of_a_transaction(
    there: int, said: dict[str, int], least: str | None
) -> None:
    assert least_in_sync(asked(TRANSACTION_STATE, *map(broker, range(there)), **said)) == least


def test_groups_have_the_least_of_the_cluster() -> None:
    assert least_in_sync(asked(CONSUMER_OFFSETS, *map(broker, range(3)))) is None


def test_another_topic_has_as_many_copies_as_the_cluster_gives_one() -> None:
    assert in_cluster(CreatableTopic(name="t", num_partitions=-1), read_config(), (), ()).replication_factor == -1
