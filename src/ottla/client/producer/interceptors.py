"""The interceptors of a producer (KIP-42).

An exception of an interceptor is logged and ignored: it must not lose a record.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from ottla.client.interface.interceptors import Interceptors
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.model import RecordMetadata


class ProducerRecord(NamedTuple):
    """A record as passed to `send`; an interceptor may replace it."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Any = None
    on_delivery: OnDelivery | None = None
    """The callback for this record's result. An interceptor that sets its own must call the original one."""


class ProducerInterceptors:
    """A chain of interceptors; each receives the result of the one before."""

    def __init__(self, interceptors: Iterable[Any]) -> None:
        methods = ("on_send(record)", "on_acknowledgement(metadata, error)")
        self._all = Interceptors(interceptors, methods, "the record is not affected")
        self._listens = any(callable(getattr(one, "on_acknowledgement", None)) for one in self._all)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send. Its callback calls the interceptors before the user's callback."""
        for one in self._all:
            seen = self._all.call(one, "on_send", record)
            if seen is not None:
                user_callback = record.on_delivery  # a newly created record does not have the callback
                record = seen if seen.on_delivery is not None else seen._replace(on_delivery=user_callback)
        return record._replace(on_delivery=partial(self.acknowledged, record.on_delivery)) if self._listens else record

    def acknowledged(
        self, on_delivery: OnDelivery | None, metadata: RecordMetadata | None, error: Exception | None
    ) -> None:
        """Call the interceptors with the result of a record, and then its callback."""
        try:
            self._all.call_all("on_acknowledgement", metadata, error)
        finally:
            if on_delivery is not None:
                on_delivery(metadata, error)

    def close(self) -> None:
        self._all.call_all("close")
