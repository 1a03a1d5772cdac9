"""What users hang into the way of every record: the interceptors of KIP-42.

An interceptor that raises is logged and passed over: it must not cost a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from ottla.client.interface.interceptors import Interceptors
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.model import RecordMetadata


class ProducerRecord(NamedTuple):
    """A record as it was handed to `send`, which an interceptor may replace."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Any = None
    on_delivery: OnDelivery | None = None
    """Who is told of this record's outcome; an interceptor that puts its own here calls the one that was there."""


class ProducerInterceptors:
    """Several of them, each seeing what the one before it returned."""

    def __init__(self, interceptors: Iterable[Any]) -> None:
        methods = ("on_send(record)", "on_acknowledgement(metadata, error)")
        self._all = Interceptors(interceptors, methods, "the record is not affected")
        self._listens = any(callable(getattr(one, "on_acknowledgement", None)) for one in self._all)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to go on with, whose callback tells the interceptors of its outcome before the user."""
        for one in self._all:
            seen = self._all.call(one, "on_send", record)
            if seen is not None:
                heard_by = record.on_delivery  # which one that is made anew does not have
                record = seen if seen.on_delivery is not None else seen._replace(on_delivery=heard_by)
        return record._replace(on_delivery=partial(self.acknowledged, record.on_delivery)) if self._listens else record

    def acknowledged(
        self, on_delivery: OnDelivery | None, metadata: RecordMetadata | None, error: Exception | None
    ) -> None:
        """A record has its outcome."""
        try:
            self._all.call_all("on_acknowledgement", metadata, error)
        finally:
            if on_delivery is not None:
                on_delivery(metadata, error)

    def close(self) -> None:
        self._all.call_all("close")
