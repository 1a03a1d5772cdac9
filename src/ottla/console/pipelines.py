"""Pipelines as the console shows them. What they are it is told from outside: it knows neither their files nor Spark."""

from __future__ import annotations

from typing import Any, Protocol


class Pipelines(Protocol):
    """Who knows the pipelines of a file or a folder."""

    def status(self) -> list[dict[str, Any]]:
        """How each of them is: what `ottla pipeline status --json` prints."""

    def resend(self, name: str) -> str:
        """Put the dead letters of one back where they came from; says how many."""

    def pause(self, name: str) -> str:
        """Have one wait until it is resumed; says so."""

    def resume(self, name: str) -> str:
        """Have one go on; says what became of it."""
