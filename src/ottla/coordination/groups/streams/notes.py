"""Notes on what happened in a streams group, for log files and live views."""

from __future__ import annotations

from msgspec import Struct


class StreamsMemberJoined(Struct, frozen=True):
    group: str
    member: str
    instance: str | None = None

    def __str__(self) -> str:
        named = "" if self.instance is None else f" as {self.instance}"
        return f"Member {self.member} joined streams group {self.group}{named}."


class StreamsMemberGone(Struct, frozen=True):
    """A member has left, or was removed."""

    group: str
    member: str
    why: str

    def __str__(self) -> str:
        return f"Member {self.member} was removed from streams group {self.group}: {self.why}."


class StreamsMemberPaused(Struct, frozen=True):
    """A static member has left temporarily."""

    group: str
    member: str
    instance: str

    def __str__(self) -> str:
        return f"Member {self.member} of streams group {self.group} has left for a while; {self.instance} may return."


class StreamsEpochBegun(Struct, frozen=True):
    """An epoch started: the assignment is computed again."""

    group: str
    epoch: int
    reason: str

    def __str__(self) -> str:
        return f"Streams group {self.group} is in epoch {self.epoch} ({self.reason})."


class StreamsTargetChanged(Struct, frozen=True):
    """A new target assignment was computed."""

    group: str
    epoch: int
    members: int

    def __str__(self) -> str:
        return f"Streams group {self.group} has a target assignment for epoch {self.epoch}: {self.members} members."


class StreamsMemberMoved(Struct, frozen=True):
    """A member was assigned other tasks, or has to revoke some."""

    group: str
    member: str
    epoch: int
    state: str
    assigned: int
    revoking: int

    def __str__(self) -> str:
        return (
            f"Member {self.member} of streams group {self.group} is in epoch {self.epoch}, {self.state}, "
            f"with {self.assigned} tasks and {self.revoking} to revoke."
        )


class DescriptionStored(Struct, frozen=True):
    """The description of a topology was stored."""

    group: str
    member: str
    epoch: int

    def __str__(self) -> str:
        return f"Member {self.member} described topology {self.epoch} of streams group {self.group}."


class DescriptionRejected(Struct, frozen=True):
    """The description of a topology was not stored."""

    group: str
    member: str
    why: str

    def __str__(self) -> str:
        return f"The topology description of member {self.member} of streams group {self.group} was not stored: {self.why}."


class ShutdownRequested(Struct, frozen=True):
    """A member has requested to stop the whole application."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"Member {self.member} has requested to stop the application of streams group {self.group}."
