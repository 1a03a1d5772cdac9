"""Notes on what happened in a share group, for log files and live views."""

from __future__ import annotations

from msgspec import Struct


class ShareMemberJoined(Struct, frozen=True):
    group: str
    member: str

    def __str__(self) -> str:
        return f"Member {self.member} joined share group {self.group}."


class ShareMemberGone(Struct, frozen=True):
    """A member has left, or was removed."""

    group: str
    member: str
    why: str

    def __str__(self) -> str:
        return f"Member {self.member} was removed from share group {self.group}: {self.why}."


class ShareEpochBegun(Struct, frozen=True):
    """An epoch started: the assignment is computed again."""

    group: str
    epoch: int
    reason: str

    def __str__(self) -> str:
        return f"Share group {self.group} is in epoch {self.epoch} ({self.reason})."


class ShareTargetChanged(Struct, frozen=True):
    """A new target assignment was computed."""

    group: str
    epoch: int
    members: int

    def __str__(self) -> str:
        return f"Share group {self.group} has a target assignment for epoch {self.epoch}: {self.members} members."
