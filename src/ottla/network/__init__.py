"""Length-prefixed frames over sockets, for broker and clients.

Selector ──► Channel ──► FrameSplitter   received bytes become frames
  │            └──────► SendQueue       frames are sent: sendmsg, sendfile
  └──► Listener, Poller, resolver
"""

from __future__ import annotations

from ottla.network.listener import Listener
from ottla.network.selector import Selector

__all__ = ["Listener", "Selector"]
