"""Invalid heartbeats are rejected with a reason and change nothing; valid ones close to them are accepted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.coordination.groups.consumer.story import Story

JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
SOMETHING = [TopicPartitions(UUID(int=7), [0])]
NAMELESS = "MemberId can't be empty."
WRONG: list[tuple[int, dict[str, Any], str]] = [
    (1, {"member_id": ""}, NAMELESS),
    (2, {"member_id": ""}, NAMELESS),
    (0, {"member_id": "", "member_epoch": 1}, NAMELESS),
    (0, {"member_id": "", "member_epoch": -1}, NAMELESS),
    (1, {"group_id": ""}, "GroupId can't be empty."),
    (1, {"instance_id": ""}, "an instance id is not empty"),
    (1, {"rack_id": ""}, "a rack is not empty"),
    (1, {"rebalance_timeout_ms": -1}, "a joining member must send its rebalance timeout"),
    (1, {"topic_partitions": None}, "a joining member has no partitions"),
    (1, {"topic_partitions": SOMETHING}, "a joining member has no partitions"),
    (1, {"subscribed_topic_names": None}, "a joining member must subscribe to topics"),
    (1, {"member_epoch": -2}, "only a member with an instance id can leave for a while"),
    (1, {"member_epoch": -3}, "a member epoch is -2 (temporarily leaving), -1 (leaving), 0 (joining) or above"),
    (1, {"server_assignor": "mine"}, "group.remote.assignor = mine: not one of uniform, range"),
    (1, {"subscribed_topic_regex": "("}, "subscribed topics `(`: invalid regular expression: missing closing )"),
]
RIGHT: list[tuple[int, dict[str, Any]]] = [
    (0, {"member_id": ""}),
    (1, {}),
    (1, {"instance_id": "i", "rack_id": "r", "server_assignor": "range"}),
    (1, {"rebalance_timeout_ms": 0}),
    (1, {"subscribed_topic_names": None, "subscribed_topic_regex": "t"}),
    (1, {"subscribed_topic_names": []}),
]


def answered(version: int, said: dict[str, Any]) -> str:
    story = Story()
    story.do("topics", [], {"t": "1"})
    story.heart("a", ConsumerGroupHeartbeatRequest(**JOIN | said), version)
    return story.happened[0]


@pytest.mark.parametrize(("version", "said", "sentence"), WRONG)
def test_an_impossible_heartbeat_is_rejected(version: int, said: dict[str, Any], sentence: str) -> None:
    assert sentence in answered(version, said)


@pytest.mark.parametrize(("version", "said"), RIGHT)
def test_a_valid_heartbeat_is_accepted(version: int, said: dict[str, Any]) -> None:
    assert answered(version, said).startswith("a: epoch 1 ")


def test_an_epoch_older_than_the_previous_one_is_rejected_for_any_owned_partitions() -> None:
    Story().play("""
        topics t=2 u=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        alive a u
        a: epoch 1 has nothing
        Reconciling 2/2: a@1[-t-0 -t-1]

        alive a owns=
        a: epoch 2 has u-0 u-1
        Stable 2/2: a@2[u-0 u-1]

        alive a t
        a: epoch 2 has nothing
        Reconciling 3/3: a@2[-u-0 -u-1]

        alive a owns=
        a: epoch 3 has t-0 t-1
        Stable 3/3: a@3[t-0 t-1]

        alive a epoch=2 owns= → a: epoch 3
        alive a epoch=1 owns= → a: FENCED_MEMBER_EPOCH member epoch 1 is smaller than 3, which the coordinator knows: give up all partitions and join again
    """)
