"""What the topics of the target lack. Nothing is ever taken away from it: topics, partitions and configs of its own stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

NOT_CARRIED = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",  # records keep the time that they have
        "min.insync.replicas",
        "unclean.leader.election.enable",
    }
)
"""Configs that belong to a cluster, by the example of MirrorMaker's `config.properties.exclude`."""


class TopicShape(NamedTuple):
    """A topic without its records."""

    partitions: int
    configs: Mapping[str, str]
    """Those that somebody has set."""


class TopicPlan(NamedTuple):
    """What is to be done in the target, by its names of topics."""

    create: dict[str, TopicShape]
    grow: dict[str, int]
    """To how many partitions."""
    alter: dict[str, dict[str, str]]
    """Configs that differ."""


def plan_topics(
    source: Mapping[str, TopicShape],
    target: Mapping[str, TopicShape],
    renamed: Callable[[str], str],
    *,
    with_configs: bool = True,
) -> TopicPlan:
    """What makes the target ready for these topics."""
    plan = TopicPlan({}, {}, {})
    for name, shape in source.items():
        wanted = TopicShape(shape.partitions, carried_configs(shape.configs) if with_configs else {})
        add_topic(plan, renamed(name), wanted, target.get(renamed(name)))
    return plan


def add_topic(plan: TopicPlan, name: str, wanted: TopicShape, there: TopicShape | None) -> None:
    if there is None:
        plan.create[name] = wanted
        return
    if there.partitions < wanted.partitions:
        plan.grow[name] = wanted.partitions
    if different := {key: value for key, value in wanted.configs.items() if there.configs.get(key) != value}:
        plan.alter[name] = different


def carried_configs(configs: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if name not in NOT_CARRIED}
