"""A moment has come that a group waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.coordination.groups.classic.rebalancing import sync_time_is_up, time_is_up
from ottla.coordination.groups.classic.sessions import end_session
from ottla.coordination.groups.classic.step import JOIN, SESSION, SYNC, Step
from ottla.coordination.groups.events import AlarmName

ALARMS: Mapping[str, Callable[[Step, str], None]] = {
    SESSION: end_session,
    JOIN: lambda step, _: time_is_up(step),
    SYNC: lambda step, _: sync_time_is_up(step),
}
"""What each kind of alarm is for."""


def ring(step: Step, name: AlarmName) -> None:
    """Do what is due."""
    ALARMS[name.kind](step, name.member)
