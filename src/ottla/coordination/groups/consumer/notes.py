"""Notes on what happened in a consumer group, for log files and live views."""

from __future__ import annotations

from msgspec import Struct


class MemberJoined(Struct, frozen=True):
    group: str
    member: str
    instance: str | None
    protocol: str
    """The member's protocol: consumer or classic."""

    def __str__(self) -> str:
        static = f" with instance id {self.instance}" if self.instance is not None else ""
        return f"Member {self.member}{static} joined consumer group {self.group} with the {self.protocol} protocol."


class EpochBegun(Struct, frozen=True):
    """An epoch started: the assignment has to be computed again."""

    group: str
    epoch: int
    reason: str

    def __str__(self) -> str:
        return f"Consumer group {self.group} is in epoch {self.epoch} ({self.reason})."


class TargetChanged(Struct, frozen=True):
    """A new target assignment was computed."""

    group: str
    epoch: int
    assignor: str
    members: int

    def __str__(self) -> str:
        return f"Consumer group {self.group} has a target assignment for epoch {self.epoch}: {self.members} members, assignor {self.assignor}."


class MemberMoved(Struct, frozen=True):
    """A member is a step further on its way to its target."""

    group: str
    member: str
    epoch: int
    state: str
    assigned: int
    revoking: int

    def __str__(self) -> str:
        back = f", {self.revoking} to revoke" if self.revoking else ""
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
        return f"Member {self.member} was removed from consumer group {self.group}: {self.why}."


class StaticMemberPaused(Struct, frozen=True):
    """A static member has left temporarily, and may return until its session expires."""

    group: str
    member: str
    instance: str

    def __str__(self) -> str:
        return f"Static member {self.member} with instance id {self.instance} temporarily left consumer group {self.group}."


class GroupConverted(Struct, frozen=True):
    """A group was converted to the other protocol."""

    group: str
    kind: str
    """Its kind after the conversion."""

    def __str__(self) -> str:
        return f"Group {self.group} was converted to a {self.kind} group."
