"""What happened in a consumer group, for people: each note says itself."""

from __future__ import annotations

from msgspec import Struct


class MemberJoined(Struct, frozen=True):
    group: str
    member: str
    instance: str | None
    protocol: str
    """Which one it speaks: consumer or classic."""

    def __str__(self) -> str:
        static = f" with instance id {self.instance}" if self.instance is not None else ""
        return f"Member {self.member}{static} joins consumer group {self.group} by the {self.protocol} protocol."


class EpochBegun(Struct, frozen=True):
    """The assignment is to be worked out anew, and why."""

    group: str
    epoch: int
    reason: str

    def __str__(self) -> str:
        return f"Consumer group {self.group} is in epoch {self.epoch} ({self.reason})."


class TargetChanged(Struct, frozen=True):
    """It is known who is to have what."""

    group: str
    epoch: int
    assignor: str
    members: int

    def __str__(self) -> str:
        return f"Consumer group {self.group} has a target for epoch {self.epoch}: {self.members} members, by {self.assignor}."


class MemberMoved(Struct, frozen=True):
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


class MemberGone(Struct, frozen=True):
    """A member has left, or was removed."""

    group: str
    member: str
    why: str

    def __str__(self) -> str:
        return f"Member {self.member} is no longer in consumer group {self.group}: {self.why}."


class StaticMemberPaused(Struct, frozen=True):
    """A static member has left, and may come back within its session."""

    group: str
    member: str
    instance: str

    def __str__(self) -> str:
        return f"Static member {self.member} with instance id {self.instance} temporarily left consumer group {self.group}."


class GroupConverted(Struct, frozen=True):
    """A group goes on by the other protocol."""

    group: str
    kind: str
    """What it is now."""

    def __str__(self) -> str:
        return f"Group {self.group} is a {self.kind} group from now on."
