"""A moment has come that a group waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.coordination.groups.classic.draft import JOIN, SESSION, SYNC, ClassicDraft
from ottla.coordination.groups.classic.rebalancing import sync_time_is_up, time_is_up
from ottla.coordination.groups.classic.sessions import end_session
from ottla.coordination.groups.events import AlarmName

ALARMS: Mapping[str, Callable[[ClassicDraft, str], None]] = {
    SESSION: end_session,
    JOIN: lambda draft, _: time_is_up(draft),
    SYNC: lambda draft, _: sync_time_is_up(draft),
}
"""What each kind of alarm is for."""


def ring(draft: ClassicDraft, name: AlarmName) -> None:
    """Do what is due."""
    ALARMS[name.kind](draft, name.member)
