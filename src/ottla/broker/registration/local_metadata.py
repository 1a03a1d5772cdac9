"""The metadata of a node that is broker and controller, as its broker role reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.registration.controller_channel import LocalController
from ottla.coordination.quorum.observer import Address
from ottla.protocol.schema import Message


class LocalMetadata(Protocol):
    """The committed metadata of the controller role in this process."""

    @property
    def image(self) -> ObservedMetadata:
        """The metadata up to the high watermark, replayed by the controller role."""

    @property
    def controller(self) -> LocalController:
        """The role to call directly while it is the active controller."""

    @property
    def leader(self) -> Address | None:
        """The address of the active controller, if it is known. Any thread may read it."""

    def connect(self, applied: Callable[[list[Message] | None], None], on_leader: Callable[[], None]) -> None:
        """Report each change of the metadata and each new active controller from now on."""

    def start(self) -> None:
        """Nothing has to be started where the controller role runs already."""

    def close(self) -> None:
        """Stop reporting to a broker that stops."""
