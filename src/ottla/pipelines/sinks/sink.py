"""What every sink of a pipeline has."""

from __future__ import annotations

from typing import ClassVar

from ottla.pipelines.model import Model


class Sink(Model):
    type: str
    guarantee: ClassVar[str] = "at least once"
    """How often a row arrives, whoever is killed in between."""

    def describe(self) -> str:
        """In a few words, without secrets."""
        return self.type
