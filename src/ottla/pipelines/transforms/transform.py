"""What every transform has."""

from __future__ import annotations

from ottla.pipelines.model import Model


class Transform(Model):
    """A step from rows to rows."""

    def describe(self) -> str:
        """In a few words."""
        return type(self).__name__
