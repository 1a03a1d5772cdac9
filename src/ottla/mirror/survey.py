"""Both clusters as admins see them: what there is, and the plans carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.errors import ConfigError, KafkaError, KafkaTimeoutError, TopicAlreadyExistsError
from ottla.mirror.group_plan import GroupPlan, plan_group
from ottla.mirror.ledger import Ledger, Read
from ottla.mirror.selection import LEDGERS, fits
from ottla.mirror.settings import MirrorSettings
from ottla.mirror.topic_plan import TopicPlan, TopicShape, plan_topics
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin

SET_BY_SOMEBODY = "DYNAMIC_TOPIC_CONFIG"
REACHED_SECONDS = 5.0
"""How long a cluster may be silent at first."""
DEFAULT = "source"
"""The name of a mirror whose source has no id."""


class Survey:
    """Looks at the source, changes the target."""

    def __init__(self, source: Admin, target: Admin, settings: MirrorSettings) -> None:
        self._source = source
        self._target = target
        self._settings = settings

    def name(self) -> str:
        """Who this mirror is; refuses to carry a cluster's topics onto themselves."""
        source, target = id_of("source", self._source), id_of("target", self._target)
        if source is not None and source == target and not self._settings.selection.prefix:
            raise ConfigError(
                f"source and target are the same cluster {source!r}, and topics would be carried onto themselves; "
                "give the target's topics a prefix"
            )
        return self._settings.name or source or DEFAULT

    def ensure_ledger(self, name: str) -> str:
        """The topic that keeps how far the mirror of this name has come."""
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
        """Make the target ready; returns the partitions of the source that are carried, and what was done."""
        selection = self._settings.selection
        source = shapes(self._source, selection.of_topics(self._source.list_topics()))
        wanted = {selection.renamed(name) for name in source}
        target = shapes(self._target, sorted(wanted & self._target.list_topics(internal=True).keys()))
        plan = plan_topics(source, target, selection.renamed, with_configs=self._settings.with_configs)
        self._carry_out(plan)
        return [TopicPartition(name, p) for name, shape in source.items() for p in range(shape.partitions)], plan

    def unmatched(self) -> list[str]:
        """The patterns that fit no topic of the source; a name that is misspelt is one."""
        names = self._source.list_topics()
        return [each for each in self._settings.selection.topics if not any(fits(name, [each]) for name in names)]

    def _carry_out(self, plan: TopicPlan) -> None:
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
        """Commit in the target what groups committed in the source; returns what was done for which."""
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
        plan = plan_group(committed, there, ledger, read_to, self._settings.selection.renamed)
        if plan.offsets:
            try:
                self._target.alter_consumer_group_offsets(name, plan.offsets)
            except KafkaError as error:
                if error.name not in ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC"):
                    raise
                return None  # a member has come meanwhile
        return plan


def id_of(side: str, admin: Admin) -> str | None:
    """The id of a cluster, which is asked first; one that is silent is named."""
    try:
        return admin.describe_cluster(REACHED_SECONDS).cluster_id
    except KafkaTimeoutError as error:
        raise KafkaTimeoutError(f"the {side} was not reached: {error}") from error


def shapes(admin: Admin, names: list[str]) -> dict[str, TopicShape]:
    """Topics with the configs that somebody has set."""
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
                if entry.source == SET_BY_SOMEBODY and entry.value is not None
            },
        )
        for name in names
    }


def committed_by(admin: Admin, group: str) -> Mapping[TopicPartition, int]:
    """What a group has committed; nothing where there is no such group."""
    try:
        return {tp: at.offset for tp, at in admin.list_consumer_group_offsets(group).items() if at.offset >= 0}
    except KafkaError as error:
        if error.name == "GROUP_ID_NOT_FOUND":
            return {}
        raise
