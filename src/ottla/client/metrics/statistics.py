"""Call the user's `on.statistics` function with the metrics at an interval."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.runtime.future import THREAD
from ottla.model import FOREVER

LOG = logging.getLogger(__name__)


class Statistics:
    """Run by the thread that calls the function.

    An exception of the function is logged, and the next call follows as usual.
    """

    def __init__(self, interval_ms: int, callback: Callable[[ClientMetrics], Any] | None, now: float) -> None:
        self._span = interval_ms / 1000
        self._callback = callback
        self._due = FOREVER if callback is None or not interval_ms else now + self._span

    def report_if_due(self, now: float, collect_metrics: Callable[[], ClientMetrics]) -> float:
        """Call the function with the result of `collect_metrics` if it is due.

        Return the seconds until it is due; infinity for never.
        """
        if now >= self._due:
            self._due = now + self._span
            self._call(collect_metrics)
        return self._due - now

    def _call(self, collect_metrics: Callable[[], ClientMetrics]) -> None:
        assert self._callback is not None, "without a function nothing is due"
        try:
            self._callback(collect_metrics())
        except BaseException as error:
            if not isinstance(error, Exception) and not THREAD.is_client:
                raise
            LOG.exception("on.statistics raised function=%r; it is called again after the interval", self._callback)
