"""Plan the changes of topics in the target. Nothing is deleted there: its own topics, partitions and configs stay."""

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
        "message.timestamp.type",  # records keep their timestamps
        "min.insync.replicas",
        "unclean.leader.election.enable",
    }
)
"""Configs that are specific to a cluster, modelled on MirrorMaker's `config.properties.exclude`."""


class TopicShape(NamedTuple):
    """The partitions and configs of a topic."""

    partitions: int
    configs: Mapping[str, str]
    """The configs that are set explicitly."""


class TopicPlan(NamedTuple):
    """The changes in the target, by its topic names."""

    create: dict[str, TopicShape]
    grow: dict[str, int]
    """The new number of partitions."""
    alter: dict[str, dict[str, str]]
    """Configs that differ."""


def plan_topics(
    source: Mapping[str, TopicShape],
    target: Mapping[str, TopicShape],
    target_name: Callable[[str], str],
    *,
    with_configs: bool = True,
) -> TopicPlan:
    """Return the changes that prepare the target for these topics."""
    plan = TopicPlan({}, {}, {})
    for name, shape in source.items():
        wanted = TopicShape(shape.partitions, copied_configs(shape.configs) if with_configs else {})
        add_topic(plan, target_name(name), wanted, target.get(target_name(name)))
    return plan


def add_topic(plan: TopicPlan, name: str, wanted: TopicShape, there: TopicShape | None) -> None:
    if there is None:
        plan.create[name] = wanted
        return
    if there.partitions < wanted.partitions:
        plan.grow[name] = wanted.partitions
    if different := {key: value for key, value in wanted.configs.items() if there.configs.get(key) != value}:
        plan.alter[name] = different


def copied_configs(configs: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if name not in NOT_CARRIED}
