"""The state machine of a pipeline: its states, and the next action.

Pure: the time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
"""Seconds before a failed pipeline is started again; doubled with each failure."""
WELL_AFTER = 60.0
"""Seconds of running after which earlier failures are forgotten."""
TRIES_ONCE = 3
"""The number of attempts to start a pipeline that runs once."""


class PipelineState(StrEnum):
    """The state of a pipeline."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"
    STOPPED = "stopped"


OVER = {PipelineState.FAILED, PipelineState.DONE, PipelineState.STOPPED}
"""The final states."""
HELD = {PipelineState.PAUSED, PipelineState.STOPPED}
"""The states that a user requested; they outlive the manager."""


@dataclass(frozen=True)
class Lifecycle:
    """The state of one pipeline."""

    once: bool = False
    state: PipelineState = PipelineState.WAITING
    start_at: float = 0.0
    """The earliest time of the next start, while waiting."""
    since: float = 0.0
    """The time of the last start."""
    failures: int = 0
    """Consecutive failures."""
    reason: str | None = None
    """The reason of the last failure."""

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    def can_start(self, now: float) -> bool:
        return self.state is PipelineState.WAITING and now >= self.start_at

    def as_started(self, now: float) -> Lifecycle:
        assert self.state is PipelineState.WAITING
        return replace(self, state=PipelineState.STARTING, since=now)

    def as_running(self) -> Lifecycle:
        """Return the state after the query's first check for rows."""
        return replace(self, state=PipelineState.RUNNING) if self.state is PipelineState.STARTING else self

    def as_failed(self, reason: str, now: float) -> Lifecycle:
        """Return the state after a failure: waiting for a restart, or failed after the last attempt of a pipeline that runs once."""
        before = 0 if self.state is PipelineState.RUNNING and now - self.since >= WELL_AFTER else self.failures
        failures = before + 1
        if self.once and failures >= TRIES_ONCE:
            return replace(self, state=PipelineState.FAILED, failures=failures, reason=reason)
        wait = backoff(failures)
        return replace(self, state=PipelineState.WAITING, start_at=now + wait, failures=failures, reason=reason)

    def as_refused(self, reason: str) -> Lifecycle:
        """Return the state after an error that a restart would not repair."""
        return replace(self, state=PipelineState.FAILED, reason=reason)

    def as_done(self) -> Lifecycle:
        """Return the state of a completed pipeline."""
        return replace(self, state=PipelineState.DONE, reason=None)

    def as_paused(self) -> Lifecycle:
        """Return the state until a user resumes the pipeline."""
        return replace(self, state=PipelineState.PAUSED)

    def as_halted(self) -> Lifecycle:
        """Return the state as in `as_paused`, with the checkpoint released so that its offsets can be changed."""
        return replace(self, state=PipelineState.STOPPED)

    def as_restarted(self, now: float) -> Lifecycle:
        """Return the state for an immediate start, from any state."""
        return replace(self, state=PipelineState.WAITING, start_at=now, failures=0)

    def as_stopped(self) -> Lifecycle:
        """Return the state after a request to end."""
        return self if self.is_over else replace(self, state=PipelineState.STOPPED)


def backoff(failures: int) -> float:
    """Return the seconds to wait after this number of consecutive failures."""
    return float(min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(failures - 1, 10)))
