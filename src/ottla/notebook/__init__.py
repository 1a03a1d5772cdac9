"""A live picture of a consumer in a notebook: `XRay(consumer)`. Needs the extra `notebook`.

consumer ──► snapshot, trace ──► picture (pure) ──► XRay ──► static/xray.js in the browser
"""

from __future__ import annotations

from ottla.notebook.xray import XRay as XRay

__all__ = ["XRay"]
