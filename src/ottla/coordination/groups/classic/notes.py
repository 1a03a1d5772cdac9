"""What happened in a group, for people: each note says itself in the words of Kafka's log."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.groups.classic.group import ClassicGroupState, listed


class MemberIdGiven(Struct, frozen=True):
    """A client without an id was given one, and is to join again with it (KIP-394)."""

    group: str
    member: str
    state: ClassicGroupState

    def __str__(self) -> str:
        return f"group {self.group} ({self.state}): a new member is to be called {self.member}, and is asked to join with that id"


class RebalanceStarted(Struct, frozen=True):
    """Members are to join, and why."""

    group: str
    generation: int
    reason: str
    """What set it off: who came, went, fell silent or changed."""

    def __str__(self) -> str:
        return f"group {self.group} ({ClassicGroupState.PREPARING_REBALANCE}): generation {self.generation} is over: {self.reason}"


class Stabilized(Struct, frozen=True):
    """All have joined, and a generation begins."""

    group: str
    generation: int
    members: int

    def __str__(self) -> str:
        return f"group {self.group}: generation {self.generation} begins with {self.members} members"


class Assigned(Struct, frozen=True):
    """The leader said who gets what."""

    group: str
    generation: int
    leader: str
    members: int
    static: int

    def __str__(self) -> str:
        return (
            f"group {self.group}: {self.leader} shared the partitions of generation {self.generation} out to {self.members} "
            f"members, {self.static} of them static"
        )


class Emptied(Struct, frozen=True):
    """The last member is gone."""

    group: str
    generation: int

    def __str__(self) -> str:
        return f"group {self.group}: nobody is left after generation {self.generation}"


class MemberFailed(Struct, frozen=True):
    """A member was silent for its session."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"group {self.group}: {self.member} was silent for its session and is out"


class MemberLeft(Struct, frozen=True):
    """A member went of its own will, or somebody removed it."""

    group: str
    member: str
    reason: str

    def __str__(self) -> str:
        return f"group {self.group}: {self.member} left by LeaveGroup: {self.reason}"


class MembersRemoved(Struct, frozen=True):
    """Members did not come in time."""

    group: str
    members: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"group {self.group}: members that have not {self.why} are out: {listed(self.members)}"


class InstanceReplaced(Struct, frozen=True):
    """A static member came back under a new id."""

    group: str
    instance: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"group {self.group}: instance {self.instance} is back, as {self.new} instead of {self.old}"


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
