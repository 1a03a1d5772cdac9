"""Notes on what happened in a classic group, for log files and live views. Each note's text resembles Kafka's log line."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.groups.classic.group import ClassicGroupState, format_members


class MemberIdGiven(Struct, frozen=True):
    """A new client was given a member id, and has to join again with it (KIP-394)."""

    group: str
    member: str
    state: ClassicGroupState

    def __str__(self) -> str:
        return f"group {self.group} ({self.state}): a new member without an id was assigned {self.member}, and has to join again with it"


class RebalanceStarted(Struct, frozen=True):
    """A rebalance started: members have to join."""

    group: str
    generation: int
    reason: str
    """The cause: a member joined, left, expired or changed."""

    def __str__(self) -> str:
        return f"group {self.group} ({ClassicGroupState.PREPARING_REBALANCE}): rebalance of generation {self.generation}: {self.reason}"


class Stabilized(Struct, frozen=True):
    """All members joined, and a generation started."""

    group: str
    generation: int
    members: int

    def __str__(self) -> str:
        return f"group {self.group}: generation {self.generation} started with {self.members} members"


class Assigned(Struct, frozen=True):
    """The leader sent the assignment."""

    group: str
    generation: int
    leader: str
    members: int
    static: int

    def __str__(self) -> str:
        return (
            f"group {self.group}: the leader {self.leader} sent the assignment of generation {self.generation} for {self.members} "
            f"members, {self.static} of them static"
        )


class Emptied(Struct, frozen=True):
    """The last member was removed."""

    group: str
    generation: int

    def __str__(self) -> str:
        return f"group {self.group}: generation {self.generation} is empty"


class MemberFailed(Struct, frozen=True):
    """A member sent no heartbeat in its session timeout."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"group {self.group}: member {self.member} was removed because its session timed out"


class MemberLeft(Struct, frozen=True):
    """A member left, or an administrator removed it."""

    group: str
    member: str
    reason: str

    def __str__(self) -> str:
        return f"group {self.group}: member {self.member} left by LeaveGroup: {self.reason}"


class MembersRemoved(Struct, frozen=True):
    """Members were removed because they did not join or sync in time."""

    group: str
    members: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"group {self.group}: removed members that have not {self.why} in time: {format_members(self.members)}"


class InstanceReplaced(Struct, frozen=True):
    """A static member rejoined with a new member id."""

    group: str
    instance: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"group {self.group}: static member {self.instance} rejoined as {self.new}, before as {self.old}"


Note = (
    MemberIdGiven
    | RebalanceStarted
    | Stabilized
    | Assigned
    | Emptied
    | MemberFailed
    | MemberLeft
    | MembersRemoved
    | InstanceReplaced
)
