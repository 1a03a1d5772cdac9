"""What `ottla doctor` finds in a cluster: facts in, findings out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.clusters.rows import BEHIND, OFFLINE, state_of
from ottla.cli.doctor.findings import Finding, counted, few, ok, problem, warning
from ottla.client.admin.health import (
    BROKER,
    OBSERVER,
    VOTER,
    ClusterHealth,
    absence_sentence,
    next_failure_sentence,
)
from ottla.model import PartitionInfo

SOON_MS = 3_600_000
"""Records that go sooner than this may go before anybody has read them."""
LONG_MS = 300_000
"""A transaction that lasts longer keeps readers of committed records waiting for long."""
LATE_MS = 60_000
"""So much later than its timeout a coordinator has ended a transaction."""
FEWER = "ottla configs alter --topic NAME --add-config min.insync.replicas=N, or more copies: ottla cluster reassign"
ENOUGH_BROKERS = 3
"""From so many on there is room for copies."""


REMEDIES = {
    BROKER: "start it, or if it is gone for good: ottla cluster unregister {}",
    VOTER: "start it, or if it is gone for good: ottla cluster remove-controller {}",
    OBSERVER: "start it; the quorum drops it from its list after a while",
}


class TopicFacts(NamedTuple):
    """A topic and those of its configs that matter here."""

    name: str
    internal: bool
    partitions: Sequence[PartitionInfo]
    configs: Mapping[str, str]

    @property
    def copies(self) -> int:
        """The fewest that a partition has."""
        return min((len(each.replicas) for each in self.partitions), default=0)

    @property
    def in_sync(self) -> int:
        return min((len(each.in_sync_replicas) for each in self.partitions), default=0)

    def number(self, config: str) -> int | None:
        text = self.configs.get(config, "")
        return int(text) if text.lstrip("-").isdecimal() else None


class GroupFacts(NamedTuple):
    """A group, looked at twice if it was rebalancing."""

    name: str
    state: str
    is_stuck: bool = False
    """Whether it was rebalancing all the time that it was looked at."""
    lag: int = 0
    lost: int = 0
    """Records that it had not read and that retention has deleted."""


class TransactionFacts(NamedTuple):
    """A transaction under way; its timeout is what the producer asked for."""

    transactional_id: str
    lasts_ms: int
    timeout_ms: int


def partition_finding(partitions: Sequence[PartitionInfo]) -> list[Finding]:
    """Whether each has a leader, and all its copies."""
    states = [(f"{each.topic}-{each.partition}", state_of(each)) for each in partitions]
    offline = [name for name, state in states if state == OFFLINE]
    behind = [name for name, state in states if state == BEHIND]
    found = []
    if offline:
        seen = f"{counted(len(offline), 'partition')} without a leader: {few(offline)}"
        found.append(
            problem("partitions", seen, "start the brokers that have copies: ottla cluster describe names them")
        )
    if behind:
        seen = f"{counted(len(behind), 'partition')} with copies that are behind or away: {few(behind)}"
        found.append(warning("partitions", seen, "see which broker is down or slow: ottla cluster describe"))
    return found or [
        ok("partitions", f"{counted(len(partitions), 'partition')}, each with a leader and all its copies")
    ]


def node_findings(health: ClusterHealth, now_ms: int) -> list[Finding]:
    """Return a problem for each broker and voter that is away, a warning for each observer, with the effects of one more failure."""
    next_failure = next_failure_sentence(health)
    found = []
    for each in health.absences:
        seen = absence_sentence(each, now_ms) + (f"; {next_failure}" if next_failure else "")
        found.append(
            (warning if each.role == OBSERVER else problem)("nodes", seen, REMEDIES[each.role].format(each.node_id))
        )
    if found:
        return found
    brokers = "every registered broker runs"
    return [
        ok(
            "nodes",
            brokers if health.quorum is None else f"{brokers}, and every voter follows the leader of the quorum",
        )
    ]


def topic_findings(topics: Sequence[TopicFacts], brokers: int, *, refuses: bool) -> list[Finding]:
    """What of their configs will hurt; whether brokers refuse acks=all that asks for more copies than there can be.

    In a cluster the newer brokers ask for no more copies in sync than there are; one of ours alone, and older ones, do.
    """
    found = [
        *unwritable(topics, refuses=refuses),
        *one_down(topics),
        *single_copies(topics, brokers),
        *short_retention(topics),
    ]
    return found or [
        ok("topics", f"{counted(len(topics), 'topic')}, with copies, min.insync.replicas and retention that fit")
    ]


def unwritable(topics: Sequence[TopicFacts], *, refuses: bool) -> list[Finding]:
    """Where acks=all is refused, for good or as long as copies are behind."""
    needs = [(each, each.number("min.insync.replicas") or 1) for each in topics if each.partitions]
    never = [f"{each.name} ({need} of {each.copies})" for each, need in needs if need > each.copies]
    now = [f"{each.name} ({each.in_sync} of {need})" for each, need in needs if each.in_sync < need <= each.copies]
    found = []
    if never:
        seen, level = (
            f"min.insync.replicas is more than there are copies: {few(never)}",
            problem if refuses else warning,
        )
        effect = (
            "acks=all is always refused"
            if refuses
            else "some brokers refuse acks=all, others take it with fewer copies"
        )
        found.append(level("topics", f"{seen}; {effect}", FEWER))
    if now:
        seen = f"fewer copies are in sync than min.insync.replicas, so that acks=all is refused now: {few(now)}"
        found.append(problem("topics", seen, "start the brokers that are away: ottla cluster describe"))
    return found


def one_down(topics: Sequence[TopicFacts]) -> list[Finding]:
    """Where no broker may be away."""
    names = [
        each.name for each in topics if each.copies > 1 and (each.number("min.insync.replicas") or 1) == each.copies
    ]
    if not names:
        return []
    seen = f"min.insync.replicas is as many as there are copies, so that one broker that is away stops acks=all: {few(names)}"
    return [warning("topics", seen, "ottla configs alter --topic NAME --add-config min.insync.replicas=N, one less")]


def single_copies(topics: Sequence[TopicFacts], brokers: int) -> list[Finding]:
    names = [each.name for each in topics if each.copies == 1]
    if brokers < ENOUGH_BROKERS or not names:
        return []
    seen = f"{counted(len(names), 'topic')} with one copy in a cluster of {brokers} brokers: {few(names)}"
    return [warning("topics", seen, "give them more: ottla cluster reassign --topic NAME --to 1,2,3")]


def short_retention(topics: Sequence[TopicFacts]) -> list[Finding]:
    """Of what is deleted by age; -1 is never."""
    soon = [
        f"{each.name} (retention.ms={kept})"
        for each in topics
        if not each.internal
        and "delete" in each.configs.get("cleanup.policy", "delete")
        and (kept := each.number("retention.ms")) is not None
        and 0 <= kept < SOON_MS
    ]
    if not soon:
        return []
    seen = f"records are deleted within the hour: {few(soon)}"
    return [
        warning(
            "topics", seen, "ottla configs alter --topic NAME --add-config retention.ms=604800000, if that is not meant"
        )
    ]


def group_findings(groups: Sequence[GroupFacts], unseen: int = 0) -> list[Finding]:
    """Groups that do not come on; `unseen` are those that were too many to look at."""
    stuck = [f"{each.name} ({each.state})" for each in groups if each.is_stuck]
    left = [f"{each.name} ({each.lag:,} behind)" for each in groups if each.state == "Empty" and each.lag > 0]
    lost = [f"{each.name} ({each.lost:,})" for each in groups if each.lost > 0]
    found = []
    if stuck:
        remedy = (
            "see who comes and goes: ottla groups watch GROUP; a member may poll less often than max.poll.interval.ms"
        )
        found.append(warning("groups", f"rebalancing all the time that they were looked at: {few(stuck)}", remedy))
    if left:
        remedy = "start their consumers, or forget them: ottla groups delete GROUP"
        found.append(warning("groups", f"without members, and behind: {few(left)}", remedy))
    if lost:
        remedy = (
            "consumers must keep up with retention.ms, or it must be longer; auto.offset.reset says where they go on"
        )
        found.append(warning("groups", f"records were deleted before these had read them: {few(lost)}", remedy))
    if unseen:
        remedy = "look at the others by name: ottla groups describe GROUP"
        found.append(
            warning("groups", f"only the first {len(groups):,} groups were looked at, not {unseen:,} more", remedy)
        )
    return found or [ok("groups", f"{counted(len(groups), 'group')}, none stuck or left behind")]


def transaction_findings(under_way: Sequence[TransactionFacts], hanging: Sequence[str]) -> list[Finding]:
    """Transactions that keep others waiting; `hanging` are partitions with one that no coordinator knows."""
    late = [each for each in under_way if each.lasts_ms > each.timeout_ms + LATE_MS]
    long = [each for each in under_way if each.lasts_ms > LONG_MS and each not in late]
    found = []
    if hanging:
        seen = f"transactions that no coordinator will end keep readers of committed records waiting: {few(hanging)}"
        found.append(problem("transactions", seen, "ottla transactions find-hanging, then ottla transactions abort"))
    if late:
        seen = f"transactions are open for longer than their timeout: {few(map(lasting, late))}"
        found.append(
            problem(
                "transactions",
                seen,
                "see that the broker that coordinates them is well: ottla transactions describe ID",
            )
        )
    if long:
        seen = f"transactions are open for long, and readers of committed records wait: {few(map(lasting, long))}"
        found.append(
            warning("transactions", seen, "commit more often, or shut the producer out: ottla transactions describe ID")
        )
    return found or [ok("transactions", f"{counted(len(under_way), 'transaction')} under way, none for long")]


def lasting(each: TransactionFacts) -> str:
    return f"{each.transactional_id} ({each.lasts_ms / 1000:,.0f} s)"
