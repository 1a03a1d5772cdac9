"""The interceptors of a consumer: called before `poll` returns records, after commits, and on events."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.typed_record import K, V
from ottla.client.interface.interceptors import Interceptors
from ottla.model import OffsetAndMetadata, TopicPartition

LOG = logging.getLogger(__name__)


class ConsumerInterceptors:
    """A chain of interceptors; each receives the result of the one before.

    Called in the thread that polls, commits or closes.
    """

    def __init__(self, interceptors: Iterable[Any]) -> None:
        self._all = Interceptors(
            interceptors,
            ("on_consume(records)", "on_commit(offsets)", "on_event(event)"),
            "records and offsets are not affected",
        )
        self.hears_events = any(hasattr(one, "on_event") for one in self._all)

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_consume(self, records: ConsumerRecords[K, V]) -> ConsumerRecords[K, V]:
        """Return the records after all interceptors. An interceptor returns all or some of its input, or None for all."""
        for one in self._all:
            seen = self._all.call(one, "on_consume", records)
            if isinstance(seen, ConsumerRecords):
                records = seen
            elif seen is not None:
                LOG.error(
                    "interceptor returned no ConsumerRecords; records are not affected interceptor=%r result=%r",
                    one,
                    seen,
                )
        return records

    def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self._all.call_all("on_commit", dict(offsets))

    def on_event(self, event: Any) -> None:
        """Call the interceptors with a rare event such as a rebalance, on the thread where it occurred."""
        self._all.call_all("on_event", event)

    def close(self) -> None:
        self._all.call_all("close")
