"""The life of a pipeline that is run: what happens to it, and what is to be done.

Pure: the moment is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
"""Seconds before a pipeline that has failed is started again: doubled each time."""
WELL_AFTER = 60.0
"""Seconds of running after which earlier failures are forgotten."""
TRIES_ONCE = 3
"""How often a pipeline is started that is to run once."""


class State(StrEnum):
    """Where a pipeline is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"
    STOPPED = "stopped"


OVER = {State.FAILED, State.DONE, State.STOPPED}
"""Where nothing happens any more by itself."""
HELD = {State.PAUSED, State.STOPPED}
"""Where somebody wants it to be; these outlive the manager."""


@dataclass(frozen=True)
class Life:
    """One pipeline's."""

    once: bool = False
    state: State = State.WAITING
    start_at: float = 0.0
    """When it may be started, while it waits."""
    since: float = 0.0
    """When it was started."""
    failures: int = 0
    """In a row."""
    reason: str | None = None
    """Why it failed the last time."""

    @property
    def over(self) -> bool:
        return self.state in OVER

    def may_start(self, now: float) -> bool:
        return self.state is State.WAITING and now >= self.start_at

    def started(self, now: float) -> Life:
        assert self.state is State.WAITING
        return replace(self, state=State.STARTING, since=now)

    def runs(self) -> Life:
        """It has begun to look for rows."""
        return replace(self, state=State.RUNNING) if self.state is State.STARTING else self

    def failed(self, reason: str, now: float) -> Life:
        """It goes on after a while; one that is to run once gives up in the end."""
        before = 0 if self.state is State.RUNNING and now - self.since >= WELL_AFTER else self.failures
        failures = before + 1
        if self.once and failures >= TRIES_ONCE:
            return replace(self, state=State.FAILED, failures=failures, reason=reason)
        wait = backoff(failures)
        return replace(self, state=State.WAITING, start_at=now + wait, failures=failures, reason=reason)

    def refused(self, reason: str) -> Life:
        """Starting it again would not help."""
        return replace(self, state=State.FAILED, reason=reason)

    def done(self) -> Life:
        """There is nothing more to do."""
        return replace(self, state=State.DONE, reason=None)

    def paused(self) -> Life:
        """It is to wait until somebody resumes it."""
        return replace(self, state=State.PAUSED)

    def halted(self) -> Life:
        """The same, with its checkpoint free for whoever wants to move its offsets."""
        return replace(self, state=State.STOPPED)

    def again(self, now: float) -> Life:
        """It is to start at once, whatever was before."""
        return replace(self, state=State.WAITING, start_at=now, failures=0)

    def stopped(self) -> Life:
        """It was asked to end."""
        return self if self.over else replace(self, state=State.STOPPED)


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return float(min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(failures - 1, 10)))
