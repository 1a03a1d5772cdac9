"""What a broker's loop does for the connections that it made itself, turned by hand."""

from __future__ import annotations

from ottla.broker.peers.own_connection import OwnConnection
from ottla.network.selector import Selector


def turn(selector: Selector) -> None:
    """Hand on what came to the conversations of the loop's own making."""
    selector.poll(0)
    for channel_id, frame in selector.completed_receives:
        assert isinstance(channel_id, OwnConnection)
        channel_id.take(frame)
    for channel_id, reason in selector.disconnected.items():
        assert isinstance(channel_id, OwnConnection)
        channel_id.part(reason)
