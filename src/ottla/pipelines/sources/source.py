"""What every source of a pipeline has."""

from __future__ import annotations

from ottla.pipelines.model import Model


class Source(Model):
    type: str

    def identity(self) -> str:
        """What a checkpoint is about: it goes on only with the same."""
        return self.describe()

    def describe(self) -> str:
        """In a few words, without secrets."""
        return self.type
