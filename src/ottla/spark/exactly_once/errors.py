"""Why an exactly-once query stops rather than write a row twice or not at all."""

from __future__ import annotations

from ottla.errors import OttlaError


class ExactlyOnceError(OttlaError):
    """The query stops; the text says what to do."""


class SupersededError(ExactlyOnceError):
    """Another run has taken the batch over."""


class ChangedPlanError(ExactlyOnceError):
    """A half-written batch would go on with its rows shared out differently."""
