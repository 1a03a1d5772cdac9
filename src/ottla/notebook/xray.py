"""The widget: takes pictures of a consumer in a thread, and sends them to the browser."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from ottla.client.consumer import Consumer
from ottla.extras import extra
from ottla.notebook.picture import Picture

with extra("notebook"):
    import anywidget
    import traitlets

STATIC = Path(__file__).parent / "static"
INTERVAL_SECONDS = 0.25


class XRay(anywidget.AnyWidget):
    """Show what a consumer does: fetches, buffered records, positions, lag, and the rebalances of its group.

    `XRay(consumer)` at the end of a cell shows it; the consumer may be used by later cells. `close()` ends it. The
    consumer's own thread is not delayed: pictures are taken by another one, four times a second.
    """

    _esm = STATIC / "xray.js"
    _css = STATIC / "xray.css"
    picture = traitlets.Dict({}).tag(sync=True)
    """The last picture (`ottla.notebook.picture`)."""

    _ended: threading.Event | None = None
    """None if `__init__` has failed: ipywidgets calls `close` for such an object, too."""

    def __init__(self, consumer: Consumer[Any, Any], interval_seconds: float = INTERVAL_SECONDS) -> None:
        if not isinstance(consumer, Consumer):
            raise TypeError(f"invalid value {consumer!r:.80} for consumer: expected an ottla.Consumer")
        super().__init__()
        self._consumer = consumer
        self._interval_seconds = interval_seconds
        self._trace = consumer.trace()
        self._picture = Picture()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.update()
        self._thread = threading.Thread(target=self._watch, args=(self._ended,), name="ottla-xray", daemon=True)
        self._thread.start()

    def update(self) -> None:
        """Take a picture now."""
        with self._lock:
            self._picture.add(self._trace.take())
            self.picture = self._picture.to_json(self._consumer.snapshot())

    def close(self) -> None:
        """End the thread and the widget. The consumer stays open."""
        if self._ended is not None and not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            self._trace.close()
        super().close()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(self._interval_seconds):
            self.update()
