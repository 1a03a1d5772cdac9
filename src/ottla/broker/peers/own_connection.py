"""The base class of connections that the broker opened itself; the selector's key for one is the object.

A module of its own, so that a broker without a cluster loads no more than this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class OutgoingConnection(ABC):
    @abstractmethod
    def handle_frame(self, frame: memoryview) -> None:
        """Handle a response. No error of the other side is raised."""

    @abstractmethod
    def handle_closed(self, reason: str) -> None:
        """Handle a connection that the other side has closed."""
