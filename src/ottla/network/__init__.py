"""Frames over sockets, for broker and client alike.

Selector ──► Channel ──► FrameSplitter   bytes in, frames out
   │            └──────► SendQueue       frames out: sendmsg, sendfile
   └──► Listener, Poller, resolver
"""

from __future__ import annotations

from ottla.network.listener import Listener
from ottla.network.selector import Selector

__all__ = ["Listener", "Selector"]
