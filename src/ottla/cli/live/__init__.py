"""A view that is drawn again and again: in a terminal a window with keys, elsewhere lines of what is new.

LiveView ─► Screen ─► Keyboard
              │
              ▼
        frame ─► Window ─► TimeLine        pure: what is seen of a picture, and how far it is scrolled
"""

from ottla.cli.live.panel import panel
from ottla.cli.live.view import LiveView

__all__ = ["LiveView", "panel"]
