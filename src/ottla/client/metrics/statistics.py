"""Telling a program of its client's numbers at an interval, by a function of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.runtime.future import THREAD
from ottla.model import FOREVER

LOG = logging.getLogger(__name__)


class Statistics:
    """Looked at by the thread in which the function is to be called; one that fails is logged, and called again."""

    def __init__(self, interval_ms: int, tell: Callable[[ClientMetrics], Any] | None, now: float) -> None:
        self._span = interval_ms / 1000
        self._tell = tell
        self._due = FOREVER if tell is None or not interval_ms else now + self._span

    def look(self, now: float, take: Callable[[], ClientMetrics]) -> float:
        """Tell what `take` returns, where that is due; returns the seconds until it is, infinity for never."""
        if now >= self._due:
            self._due = now + self._span
            self._call(take)
        return self._due - now

    def _call(self, take: Callable[[], ClientMetrics]) -> None:
        assert self._tell is not None, "it is never due"
        try:
            self._tell(take())
        except BaseException as error:
            if not isinstance(error, Exception) and not THREAD.is_client:
                raise
            LOG.exception("on.statistics failed with %r; it is called again after the interval", self._tell)
