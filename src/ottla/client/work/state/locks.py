"""The acquisition locks of the records that a worker holds, and when they are renewed. Pure."""

from __future__ import annotations

from ottla.client.work.state.schedule import Job


class Locks:
    """The locks of unfinished jobs of a share group. They are renewed after half of their time."""

    def __init__(self) -> None:
        self._locked_at: dict[Job, float] = {}
        """The time when each lock has started or was renewed, in ascending order."""

    def __len__(self) -> int:
        return len(self._locked_at)

    def start(self, job: Job, now: float) -> None:
        """Start the lock of a job, or start it again."""
        self._locked_at.pop(job, None)
        self._locked_at[job] = now

    def end(self, job: Job) -> None:
        """Forget the lock of a job that was acknowledged or lost."""
        self._locked_at.pop(job, None)

    def renew_due(self, now: float, lock_seconds: float) -> list[Job]:
        """Return the jobs with locks to be renewed now, which start again."""
        due = []
        for job, locked_at in self._locked_at.items():
            if now < locked_at + lock_seconds / 2:
                break
            due.append(job)
        for job in due:
            self.start(job, now)
        return due
