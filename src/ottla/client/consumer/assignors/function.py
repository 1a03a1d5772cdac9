"""A user-defined assignor, created from a function.

    def by_hand(members, partitions, owned):
        return {member: [...] for member in members}

The function receives the subscribed topics of each member, the number of partitions of each topic, and the owned
partitions of each member. It returns the partitions of each member. The result is checked: an invalid one ends the
rebalance with an error, rather than with partitions that no member or two members read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignment, RebalanceProtocol, Subscription, partition_counts
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.errors import AssignmentError
from ottla.model import TopicPartition

AssignFunction = Callable[
    [Mapping[str, Sequence[str]], Mapping[str, int], Mapping[str, Sequence[TopicPartition]]],
    Mapping[str, Iterable[tuple[str, int]]],
]
"""(topics by member id, partition count by topic, owned partitions by member id) → partitions by member id."""


class FunctionAssignor:
    """Calls a function. Uses the eager protocol, so the result may be any assignment."""

    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def __init__(self, function: AssignFunction, name: str | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        """The name that the members of a group must agree on; by default the name of the function."""
        self._function = function

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Do nothing: the assignor has no state."""

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        wanted = {member: list(subscription.topics) for member, subscription in subscriptions.items()}
        owned = {member: list(subscription.owned_partitions) for member, subscription in subscriptions.items()}
        answer = self._function(wanted, counts, owned)
        if not isinstance(answer, Mapping):
            raise self._error(f"returned {answer!r:.100}, not a mapping of member ids to lists of partitions")
        owners: dict[TopicPartition, str] = {}
        given = {
            member: Assignment(self._check_partitions(answer.get(member, ()), member, counts, owners))
            for member in wanted
        }
        unknown_members = sorted(map(str, answer.keys() - wanted.keys()))
        if unknown_members:
            raise self._error(
                f"named member {unknown_members[0]!r}, which is not in the group: {', '.join(sorted(wanted))}"
            )
        return given

    def _check_partitions(
        self, partitions: Any, member: str, counts: Mapping[str, int], owners: dict[TopicPartition, str]
    ) -> list[TopicPartition]:
        """Return the partitions of one member, and record it in `owners`."""
        found = []
        for partition in self._iter_partitions(partitions, member):
            tp = self._checked_partition(partition, member)
            if not 0 <= tp.partition < counts.get(tp.topic, 0):
                have = f"topic {tp.topic!r} has {counts.get(tp.topic, 0)} partitions with subscribers"
                raise self._error(f"gave {tp} to {member!r}, which does not exist: {have}")
            if tp in owners:
                raise self._error(f"gave {tp} twice: to {owners[tp]!r} and to {member!r}; it must have one owner")
            owners[tp] = member
            found.append(tp)
        return found

    def _iter_partitions(self, partitions: Any, member: str) -> Iterable[Any]:
        if isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
            raise self._error(f"gave {partitions!r:.100} to {member!r}, which is not a list of partitions")
        return partitions

    def _checked_partition(self, partition: Any, member: str) -> TopicPartition:
        match partition:
            case (str(topic), int(number)):
                return TopicPartition(topic, number)
        raise self._error(f"gave {partition!r:.100} to {member!r}, which is not a (topic, partition)")

    def _error(self, what: str) -> AssignmentError:
        return AssignmentError(f"assignor {self.name!r} {what}; correct the function")
