"""A moment has come that a group waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.coordination.groups.classic.draft import JOIN, SESSION, SYNC, ClassicDraft
from ottla.coordination.groups.classic.rebalancing import on_join_timeout, on_sync_timeout
from ottla.coordination.groups.classic.sessions import expire_session
from ottla.coordination.groups.events import AlarmName

ALARMS: Mapping[str, Callable[[ClassicDraft, str], None]] = {
    SESSION: expire_session,
    JOIN: lambda draft, _: on_join_timeout(draft),
    SYNC: lambda draft, _: on_sync_timeout(draft),
}
"""What each kind of alarm is for."""


def ring(draft: ClassicDraft, name: AlarmName) -> None:
    ALARMS[name.kind](draft, name.member)
