"""What happened in a group, for people: each note says itself in the words of Kafka's log."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.coordination.groups.member import listed
from ottla.coordination.groups.state import State


@dataclass(frozen=True, slots=True)
class MemberIdGiven:
    """A client without an id was given one, and is to join again with it (KIP-394)."""

    group: str
    member: str
    state: State

    def __str__(self) -> str:
        return (
            f"Dynamic member with unknown member id joins group {self.group} in {self.state} state. "
            f"Created a new member id {self.member} and requesting the member to rejoin with this id."
        )


@dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """Members are to join, and why."""

    group: str
    generation: int
    reason: str
    """What set it off: who came, went, fell silent or changed."""

    def __str__(self) -> str:
        return (
            f"Preparing to rebalance group {self.group} in state {State.PREPARING_REBALANCE} "
            f"with old generation {self.generation} (reason: {self.reason})."
        )


@dataclass(frozen=True, slots=True)
class Stabilized:
    """All have joined, and a generation begins."""

    group: str
    generation: int
    members: int

    def __str__(self) -> str:
        return f"Stabilized group {self.group} generation {self.generation} with {self.members} members."


@dataclass(frozen=True, slots=True)
class Assigned:
    """The leader said who gets what."""

    group: str
    generation: int
    leader: str
    members: int
    static: int

    def __str__(self) -> str:
        return (
            f"Assignment received from leader {self.leader} for group {self.group} for generation {self.generation}. "
            f"The group has {self.members} members, {self.static} of which are static."
        )


@dataclass(frozen=True, slots=True)
class Emptied:
    """The last member is gone."""

    group: str
    generation: int

    def __str__(self) -> str:
        return f"Group {self.group} with generation {self.generation} is now empty."


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """A member was silent for its session."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"Member {self.member} in group {self.group} has failed, removing it from the group."


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """A member went of its own will, or somebody removed it."""

    group: str
    member: str
    reason: str

    def __str__(self) -> str:
        return (
            f"Member {self.member} has left group {self.group} through explicit `LeaveGroup` request; "
            f"client reason: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class MembersRemoved:
    """Members did not come in time."""

    group: str
    members: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"Group {self.group} removed members who haven't {self.why}: {listed(self.members)}"


@dataclass(frozen=True, slots=True)
class InstanceReplaced:
    """A static member came back under a new id."""

    group: str
    instance: str
    old: str
    new: str

    def __str__(self) -> str:
        return (
            f"Static member with instance id {self.instance} rejoins group {self.group}: "
            f"member id {self.old} is replaced by {self.new}."
        )


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
