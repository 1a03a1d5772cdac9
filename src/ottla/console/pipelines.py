"""The interface through which the console accesses pipelines; it knows neither their files nor Spark."""

from __future__ import annotations

from typing import Any, Protocol


class Pipelines(Protocol):
    """The pipelines of a file or a folder."""

    def status(self) -> list[dict[str, Any]]:
        """Return the rows of `ottla pipeline status --json`."""

    def resend(self, name: str) -> str:
        """Send the dead letters of a pipeline to their source topics again; return a sentence with their number."""

    def pause(self, name: str) -> str:
        """Pause a pipeline until it is resumed; return a sentence with the result."""

    def resume(self, name: str) -> str:
        """Resume a pipeline; return a sentence with the result."""
