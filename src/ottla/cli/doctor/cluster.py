"""Evaluate the facts about a cluster. Pure functions from facts to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.clusters.health import NO_ACTIVE_CONTROLLER
from ottla.cli.clusters.rows import BEHIND, OFFLINE, state_of
from ottla.cli.counts import format_count
from ottla.cli.doctor.findings import Finding, format_few, ok, problem, warning
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
"""Retention below this time may delete records before they are read."""
LONG_MS = 300_000
"""A transaction of this age delays consumers with read_committed noticeably."""
LATE_MS = 60_000
"""The delay after which the coordinator should have aborted a transaction that exceeded its timeout."""
FEWER = "ottla configs alter --topic NAME --add-config min.insync.replicas=N, or more copies: ottla cluster reassign"
ENOUGH_BROKERS = 3
"""The number of brokers from which on several replicas are expected."""


REMEDIES = {
    BROKER: "start it, or if it is gone for good: ottla cluster unregister {}",
    VOTER: "start it, or if it is gone for good: ottla cluster remove-controller {}",
    OBSERVER: "start it; the quorum drops it from its list after a while",
}


class TopicFacts(NamedTuple):
    """A topic and its relevant configs."""

    name: str
    internal: bool
    partitions: Sequence[PartitionInfo]
    configs: Mapping[str, str]

    @property
    def copies(self) -> int:
        """The smallest replication factor of its partitions."""
        return min((len(each.replicas) for each in self.partitions), default=0)

    @property
    def in_sync(self) -> int:
        return min((len(each.in_sync_replicas) for each in self.partitions), default=0)

    def number(self, config: str) -> int | None:
        text = self.configs.get(config, "")
        return int(text) if text.lstrip("-").isdecimal() else None


class GroupFacts(NamedTuple):
    """A group; a rebalancing one was observed repeatedly."""

    name: str
    state: str
    is_stuck: bool = False
    """True if it was rebalancing during the whole observation."""
    lag: int = 0
    lost: int = 0
    """The number of unread records that retention has deleted."""


class TransactionFacts(NamedTuple):
    """A running transaction; its timeout is the one that the producer requested."""

    transactional_id: str
    lasts_ms: int
    timeout_ms: int


def partition_finding(partitions: Sequence[PartitionInfo]) -> list[Finding]:
    """Report partitions without a leader or with out-of-sync replicas."""
    states = [(f"{each.topic}-{each.partition}", state_of(each)) for each in partitions]
    offline = [name for name, state in states if state == OFFLINE]
    behind = [name for name, state in states if state == BEHIND]
    found = []
    if offline:
        seen = f"{format_count(len(offline), 'partition')} without a leader: {format_few(offline)}"
        found.append(
            problem("partitions", seen, "start the brokers that have copies: ottla cluster describe names them")
        )
    if behind:
        seen = f"{format_count(len(behind), 'partition')} with copies that are behind or away: {format_few(behind)}"
        found.append(warning("partitions", seen, "see which broker is down or slow: ottla cluster describe"))
    return found or [
        ok("partitions", f"{format_count(len(partitions), 'partition')}, each with a leader and all its copies")
    ]


def node_findings(health: ClusterHealth, now_ms: int) -> list[Finding]:
    """Return a problem for each broker and voter that is away, a warning for each observer, with the effects of one more failure."""
    if health.is_quorum_silent:
        return [problem("nodes", *NO_ACTIVE_CONTROLLER)]
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
    """Report topic configs that will cause errors or data loss.

    `refuses` is true if the broker rejects acks=all when min.insync.replicas exceeds the number of replicas. Newer brokers
    in a cluster limit min.insync.replicas to the number of replicas; older brokers and a single Ottla broker reject.
    """
    found = [
        *unwritable_finding(topics, refuses=refuses),
        *one_down_finding(topics),
        *single_copies_finding(topics, brokers),
        *short_retention_finding(topics),
    ]
    return found or [
        ok("topics", f"{format_count(len(topics), 'topic')}, with copies, min.insync.replicas and retention that fit")
    ]


def unwritable_finding(topics: Sequence[TopicFacts], *, refuses: bool) -> list[Finding]:
    """Report topics for which acks=all is rejected, always or until replicas catch up."""
    needs = [(each, each.number("min.insync.replicas") or 1) for each in topics if each.partitions]
    never = [f"{each.name} ({need} of {each.copies})" for each, need in needs if need > each.copies]
    now = [f"{each.name} ({each.in_sync} of {need})" for each, need in needs if each.in_sync < need <= each.copies]
    found = []
    if never:
        seen, level = (
            f"min.insync.replicas is more than there are copies: {format_few(never)}",
            problem if refuses else warning,
        )
        effect = (
            "acks=all is always refused"
            if refuses
            else "some brokers refuse acks=all, others take it with fewer copies"
        )
        found.append(level("topics", f"{seen}; {effect}", FEWER))
    if now:
        seen = f"fewer copies are in sync than min.insync.replicas, so that acks=all is refused now: {format_few(now)}"
        found.append(problem("topics", seen, "start the brokers that are away: ottla cluster describe"))
    return found


def one_down_finding(topics: Sequence[TopicFacts]) -> list[Finding]:
    """Report topics for which no broker may be offline."""
    names = [
        each.name for each in topics if each.copies > 1 and (each.number("min.insync.replicas") or 1) == each.copies
    ]
    if not names:
        return []
    seen = f"min.insync.replicas is as many as there are copies, so that one broker that is away stops acks=all: {format_few(names)}"
    return [warning("topics", seen, "ottla configs alter --topic NAME --add-config min.insync.replicas=N, one less")]


def single_copies_finding(topics: Sequence[TopicFacts], brokers: int) -> list[Finding]:
    names = [each.name for each in topics if each.copies == 1]
    if brokers < ENOUGH_BROKERS or not names:
        return []
    seen = f"{format_count(len(names), 'topic')} with one copy in a cluster of {brokers} brokers: {format_few(names)}"
    return [warning("topics", seen, "give them more: ottla cluster reassign --topic NAME --to 1,2,3")]


def short_retention_finding(topics: Sequence[TopicFacts]) -> list[Finding]:
    """Report topics with deletion by age within the hour; -1 disables it."""
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
    seen = f"records are deleted within the hour: {format_few(soon)}"
    return [
        warning(
            "topics",
            seen,
            "ottla configs alter --topic NAME --add-config retention.ms=604800000, if that is not intended",
        )
    ]


def group_findings(groups: Sequence[GroupFacts], unseen: int = 0) -> list[Finding]:
    """Report groups that do not make progress; `unseen` is the number of groups that were not checked."""
    stuck = [f"{each.name} ({each.state})" for each in groups if each.is_stuck]
    left = [f"{each.name} ({each.lag:,} behind)" for each in groups if each.state == "Empty" and each.lag > 0]
    lost = [f"{each.name} ({each.lost:,})" for each in groups if each.lost > 0]
    found = []
    if stuck:
        remedy = "see which members join and leave: ottla groups watch GROUP; a member may poll less often than max.poll.interval.ms"
        found.append(warning("groups", f"rebalancing during the whole check: {format_few(stuck)}", remedy))
    if left:
        remedy = "start their consumers, or delete them: ottla groups delete GROUP"
        found.append(warning("groups", f"without members, and behind: {format_few(left)}", remedy))
    if lost:
        remedy = "consumers must keep up with retention.ms, or it must be longer; auto.offset.reset decides where they continue"
        found.append(
            warning("groups", f"records were deleted before these groups read them: {format_few(lost)}", remedy)
        )
    if unseen:
        remedy = "check the others by name: ottla groups describe GROUP"
        found.append(
            warning("groups", f"only the first {len(groups):,} groups were checked, not {unseen:,} more", remedy)
        )
    return found or [ok("groups", f"{format_count(len(groups), 'group')}, none stuck or left behind")]


def transaction_findings(under_way: Sequence[TransactionFacts], hanging: Sequence[str]) -> list[Finding]:
    """Report transactions that delay consumers; `hanging` lists partitions with one that no coordinator knows."""
    late = [each for each in under_way if each.lasts_ms > each.timeout_ms + LATE_MS]
    long = [each for each in under_way if each.lasts_ms > LONG_MS and each not in late]
    found = []
    if hanging:
        seen = f"transactions that no coordinator will end keep readers of committed records waiting: {format_few(hanging)}"
        found.append(problem("transactions", seen, "ottla transactions find-hanging, then ottla transactions abort"))
    if late:
        seen = f"transactions are open for longer than their timeout: {format_few(map(transaction_with_age, late))}"
        found.append(
            problem(
                "transactions",
                seen,
                "see that the broker that coordinates them is well: ottla transactions describe ID",
            )
        )
    if long:
        seen = f"transactions are open for long, and readers of committed records wait: {format_few(map(transaction_with_age, long))}"
        found.append(
            warning("transactions", seen, "commit more often, or fence the producer: ottla transactions describe ID")
        )
    return found or [ok("transactions", f"{format_count(len(under_way), 'transaction')} under way, none for long")]


def transaction_with_age(each: TransactionFacts) -> str:
    return f"{each.transactional_id} ({each.lasts_ms / 1000:,.0f} s)"
