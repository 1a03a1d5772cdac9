"""What happened in a consumer group, for people: each note says itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberJoined:
    group: str
    member: str
    instance: str | None
    protocol: str
    """Which one it speaks: consumer or classic."""

    def __str__(self) -> str:
        static = f" with instance id {self.instance}" if self.instance is not None else ""
        return f"Member {self.member}{static} joins consumer group {self.group} by the {self.protocol} protocol."


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """The assignment is to be worked out anew, and why."""

    group: str
    epoch: int
    reason: str

    def __str__(self) -> str:
        return f"Consumer group {self.group} is in epoch {self.epoch} ({self.reason})."


@dataclass(frozen=True, slots=True)
class TargetChanged:
    """It is known who is to have what."""

    group: str
    epoch: int
    assignor: str
    members: int

    def __str__(self) -> str:
        return f"Consumer group {self.group} has a target for epoch {self.epoch}: {self.members} members, by {self.assignor}."


@dataclass(frozen=True, slots=True)
class MemberMoved:
    """A member is a step further on its way to its target."""

    group: str
    member: str
    epoch: int
    state: str
    assigned: int
    revoking: int

    def __str__(self) -> str:
        back = f", and is to give back {self.revoking}" if self.revoking else ""
        return (
            f"Member {self.member} of consumer group {self.group} is {self.state} in epoch {self.epoch} "
            f"with {self.assigned} partitions{back}."
        )


@dataclass(frozen=True, slots=True)
class MemberGone:
    """A member has left, or was removed."""

    group: str
    member: str
    why: str

    def __str__(self) -> str:
        return f"Member {self.member} is no longer in consumer group {self.group}: {self.why}."


@dataclass(frozen=True, slots=True)
class StaticMemberPaused:
    """A static member has left, and may come back within its session."""

    group: str
    member: str
    instance: str

    def __str__(self) -> str:
        return f"Static member {self.member} with instance id {self.instance} temporarily left consumer group {self.group}."


@dataclass(frozen=True, slots=True)
class GroupConverted:
    """A group goes on by the other protocol."""

    group: str
    kind: str
    """What it is now."""

    def __str__(self) -> str:
        return f"Group {self.group} is a {self.kind} group from now on."
