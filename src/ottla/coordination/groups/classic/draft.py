"""What follows from one event for one group, while it is being worked out."""

from __future__ import annotations

from typing import Any

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import ClassicMember
from ottla.coordination.groups.classic.notes import Note
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.events import AlarmName
from ottla.coordination.machine import Alarm, Decision, Reply

SESSION = "session"
"""A member is to be heard of until then; also one that has an id and has not joined with it."""
JOIN = "join"
"""Members may join until then."""
SYNC = "sync"
"""Members are to fetch their assignment until then."""


class ClassicDraft:
    """A group on its way from one state to another. Nobody sees it before the decision is carried out."""

    def __init__(self, group: ClassicGroup, config: GroupConfig, now: float, wall_ms: int) -> None:
        self.before = group
        self.group = group
        self.config = config
        self.now = now
        self.wall_ms = wall_ms
        self._kept = False
        self._replies: list[Reply] = []
        self._alarms: dict[AlarmName, Alarm] = {}
        self._notes: list[Note] = []

    def reply(self, ticket: int, message: Any) -> None:
        """Answer who waits under `ticket`; nobody does under 0."""
        if ticket:
            self._replies.append(Reply(ticket, message))

    def note(self, note: Note) -> None:
        self._notes.append(note)

    def keep(self) -> None:
        """Have the group written to the log, as it is at the end of this step."""
        self._kept = True

    def schedule(self, kind: str, seconds: float, member: str = "") -> None:
        """Be told when `seconds` have passed."""
        name = AlarmName(kind, self.group.group_id, member)
        self._alarms[name] = Alarm(name, self.now + seconds)

    def cancel(self, kind: str, member: str = "") -> None:
        """Not be told any more."""
        name = AlarmName(kind, self.group.group_id, member)
        self._alarms[name] = Alarm(name, None)

    def begin_session(self, member: ClassicMember) -> None:
        """Give a member its session anew."""
        self.schedule(SESSION, member.session_timeout_ms / 1000, member.member_id)

    def decision(self) -> Decision[ClassicGroupRecord | GroupInMemory]:
        records: list[ClassicGroupRecord | GroupInMemory] = [ClassicGroupRecord.of(self.group)] if self._kept else []
        # Also where nothing goes to the log: who waits is state, and comes into the machine by replay like all other.
        if self.group is not self.before or self._kept:
            records.append(GroupInMemory(self.group))
        return Decision(tuple(records), tuple(self._replies), tuple(self._alarms.values()), tuple(self._notes))
