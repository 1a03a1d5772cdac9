"""An assignor of the user's own, made of a function.

    def by_hand(members, partitions, owned):
        return {member: [...] for member in members}

It is told what each member wants, how many partitions each topic has, and what each member has, and answers who is to
have what. The answer is checked: a mistake ends the rebalance with a sentence, not with records that nobody reads or
two members do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignment, RebalanceProtocol, Subscription, partition_counts
from ottla.client.metadata.cluster import Cluster
from ottla.errors import AssignmentError
from ottla.model import TopicPartition

AssignFunction = Callable[
    [Mapping[str, Sequence[str]], Mapping[str, int], Mapping[str, Sequence[TopicPartition]]],
    Mapping[str, Iterable[tuple[str, int]]],
]
"""(topics by member id, number of partitions by topic, partitions owned by member id) → partitions by member id."""


class FunctionAssignor:
    """Asks a function; eager, so that what it answers may be anything."""

    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def __init__(self, function: AssignFunction, name: str | None = None) -> None:
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        """What the members of a group must agree on; the function's own name unless told."""
        self._function = function

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """It remembers nothing."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        wanted = {member: list(subscription.topics) for member, subscription in subscriptions.items()}
        owned = {member: list(subscription.owned_partitions) for member, subscription in subscriptions.items()}
        answer = self._function(wanted, counts, owned)
        if not isinstance(answer, Mapping):
            raise self._wrong(f"returned {answer!r:.100}, not a mapping of member ids to lists of partitions")
        owners: dict[TopicPartition, str] = {}
        given = {member: Assignment(self._checked(answer.get(member, ()), member, counts, owners)) for member in wanted}
        strangers = sorted(map(str, answer.keys() - wanted.keys()))
        if strangers:
            raise self._wrong(f"named member {strangers[0]!r}, which is not in the group: {', '.join(sorted(wanted))}")
        return given

    def _checked(
        self, partitions: Any, member: str, counts: Mapping[str, int], owners: dict[TopicPartition, str]
    ) -> list[TopicPartition]:
        """The partitions of one member; each is noted among the `owners`."""
        found = []
        for partition in self._each(partitions, member):
            tp = self._partition(partition, member)
            if not 0 <= tp.partition < counts.get(tp.topic, 0):
                have = f"topic {tp.topic!r} has {counts.get(tp.topic, 0)} partitions that somebody wants"
                raise self._wrong(f"gave {tp} to {member!r}, which does not exist: {have}")
            if tp in owners:
                raise self._wrong(f"gave {tp} twice: to {owners[tp]!r} and to {member!r}; it must have one owner")
            owners[tp] = member
            found.append(tp)
        return found

    def _each(self, partitions: Any, member: str) -> Iterable[Any]:
        if isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
            raise self._wrong(f"gave {partitions!r:.100} to {member!r}, which is not a list of partitions")
        return partitions

    def _partition(self, partition: Any, member: str) -> TopicPartition:
        match partition:
            case (str(topic), int(number)):
                return TopicPartition(topic, number)
        raise self._wrong(f"gave {partition!r:.100} to {member!r}, which is not a (topic, partition)")

    def _wrong(self, what: str) -> AssignmentError:
        return AssignmentError(f"assignor {self.name!r} {what}; mend the function")
