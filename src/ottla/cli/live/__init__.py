"""Views that are redrawn: a full-screen view with keys in a terminal, otherwise a line per event.

LiveView ─► Screen ─► Keyboard
              │
              ▼
            frame ─► Window ─► TimeLine        pure: the visible part of a picture and its scroll position
"""

from ottla.cli.live.panel import panel
from ottla.cli.live.view import LiveView

__all__ = ["LiveView", "panel"]
