"""A manual event loop for the connections that a broker opens itself."""

from __future__ import annotations

from ottla.broker.peers.own_connection import OutgoingConnection
from ottla.network.selector import Selector


def turn(selector: Selector) -> None:
    """Hand on what came to the conversations of the loop's own making."""
    selector.poll(0)
    for channel_id, frame in selector.completed_receives:
        assert isinstance(channel_id, OutgoingConnection)
        channel_id.handle_frame(frame)
    for channel_id, reason in selector.disconnected.items():
        assert isinstance(channel_id, OutgoingConnection)
        channel_id.handle_closed(reason)
