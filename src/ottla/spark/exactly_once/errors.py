"""Errors that stop an exactly-once query, because a row could be written twice or not at all."""

from __future__ import annotations

from ottla.errors import OttlaError


class ExactlyOnceError(OttlaError):
    """The query stops; the text has the remedy."""


class SupersededError(ExactlyOnceError):
    """Another run has taken over the batch."""


class ChangedPlanError(ExactlyOnceError):
    """A partly written batch would continue with another distribution of rows to tasks."""
