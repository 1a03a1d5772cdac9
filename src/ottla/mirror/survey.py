"""Query and change both clusters through admin clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.errors import ConfigError, KafkaError, KafkaTimeoutError, TopicAlreadyExistsError
from ottla.mirror.group_plan import GroupPlan, plan_group
from ottla.mirror.ledger import Ledger, Read
from ottla.mirror.selection import LEDGERS
from ottla.mirror.settings import MirrorSettings
from ottla.mirror.topic_plan import TopicPlan, TopicShape, plan_topics
from ottla.model import TopicPartition
from ottla.name_patterns import matches_any

if TYPE_CHECKING:
    from ottla.client.admin import Admin

SET_EXPLICITLY = "DYNAMIC_TOPIC_CONFIG"
REACHED_SECONDS = 5.0
"""The timeout of the first request to each cluster."""
DEFAULT = "source"
"""The name of a mirror if its source has no cluster id."""


class MirrorSurvey:
    """Reads the state of the source, and changes the target."""

    def __init__(self, source: Admin, target: Admin, settings: MirrorSettings) -> None:
        self._source = source
        self._target = target
        self._settings = settings

    def name(self) -> str:
        """Return the name of this mirror; raise ConfigError if source and target are the same cluster without a prefix."""
        source, target = id_of("source", self._source), id_of("target", self._target)
        if source is not None and source == target and not self._settings.selection.prefix:
            raise ConfigError(
                f"source and target are the same cluster {source!r}, so that topics would be copied onto themselves: "
                "set a prefix for the target's topics"
            )
        return self._settings.name or source or DEFAULT

    def ensure_ledger(self, name: str) -> str:
        """Return the ledger topic for this name; create it if it is missing."""
        from ottla.client.admin import NewTopic

        topic = LEDGERS + name
        if topic not in self._target.list_topics(internal=True):
            new = NewTopic(topic, 1, self._settings.replication_factor, {"cleanup.policy": "compact"})
            try:
                self._target.create_topics([new])
            except TopicAlreadyExistsError:
                pass  # another mirror of this name is about to be fenced
        return topic

    def make_topics(self) -> tuple[list[TopicPartition], TopicPlan]:
        """Create and change topics in the target; return the partitions of the source to copy, and the changes."""
        selection = self._settings.selection
        source = describe_topics(self._source, selection.of_topics(self._source.list_topics()))
        wanted = {selection.target_name(name) for name in source}
        target = describe_topics(self._target, sorted(wanted & self._target.list_topics(internal=True).keys()))
        plan = plan_topics(source, target, selection.target_name, with_configs=self._settings.with_configs)
        self._apply_plan(plan)
        return [TopicPartition(name, p) for name, shape in source.items() for p in range(shape.partitions)], plan

    def find_unmatched(self) -> list[str]:
        """Return the patterns that match no topic of the source; a misspelt name is one."""
        names = self._source.list_topics()
        return [
            each for each in self._settings.selection.topics if not any(matches_any(name, [each]) for name in names)
        ]

    def _apply_plan(self, plan: TopicPlan) -> None:
        from ottla.client.admin import ConfigResource, NewTopic

        factor = self._settings.replication_factor
        new = [NewTopic(name, shape.partitions, factor, shape.configs) for name, shape in plan.create.items()]
        if new:
            self._target.create_topics(new)
        if plan.grow:
            self._target.create_partitions(plan.grow)
        if plan.alter:
            self._target.alter_configs({ConfigResource("topic", name): it for name, it in plan.alter.items()})

    def move_groups(self, partitions: set[TopicPartition], ledger: Ledger, read_to: Read) -> dict[str, GroupPlan]:
        """Commit the groups' source offsets in the target; return the plan of each group."""
        if not self._settings.with_groups:
            return {}
        names = self._settings.selection.of_groups(each.group_id for each in self._source.list_consumer_groups())
        taken = {each.group_id for each in self._target.list_consumer_groups() if each.state not in ("Empty", "Dead")}
        plans = {name: self._move_group(name, partitions, ledger, read_to) for name in names if name not in taken}
        return {name: plan for name, plan in plans.items() if plan is not None}

    def _move_group(
        self, name: str, partitions: set[TopicPartition], ledger: Ledger, read_to: Read
    ) -> GroupPlan | None:
        committed = {tp: offset for tp, offset in committed_by(self._source, name).items() if tp in partitions}
        if not committed:
            return None
        there = committed_by(self._target, name)
        plan = plan_group(committed, there, ledger, read_to, self._settings.selection.target_name)
        if plan.offsets:
            try:
                self._target.alter_consumer_group_offsets(name, plan.offsets)
            except KafkaError as error:
                if error.name not in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC"):
                    raise
                return None  # a member has joined meanwhile
        return plan


def id_of(side: str, admin: Admin) -> str | None:
    """Return the id of a cluster; this first request names the cluster in its timeout error."""
    try:
        return admin.describe_cluster(REACHED_SECONDS).cluster_id
    except KafkaTimeoutError as error:
        raise KafkaTimeoutError(f"the {side} cluster is not reachable: {error}") from error


def describe_topics(admin: Admin, names: list[str]) -> dict[str, TopicShape]:
    """Return topics with the configs that are set explicitly."""
    from ottla.client.admin import ConfigResource

    if not names:
        return {}
    described = admin.describe_topics(names)
    configs = admin.describe_configs([ConfigResource("topic", name) for name in names])
    return {
        name: TopicShape(
            len(described[name].partitions),
            {
                entry.name: entry.value
                for entry in configs[ConfigResource("topic", name)].values()
                if entry.source == SET_EXPLICITLY and entry.value is not None
            },
        )
        for name in names
    }


def committed_by(admin: Admin, group: str) -> Mapping[TopicPartition, int]:
    """Return the committed offsets of a group; none if the group does not exist."""
    try:
        return {tp: at.offset for tp, at in admin.list_consumer_group_offsets(group).items() if at.offset >= 0}
    except KafkaError as error:
        if error.name == "GROUP_ID_NOT_FOUND":
            return {}
        raise
