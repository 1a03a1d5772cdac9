"""Send the results of functions: many plain records at once, others one by one, tables as tables.

The order within each topic is kept. Errors are collected until `failures` is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ottla.client.process.calls import Calls
from ottla.client.process.outgoing import Outgoing
from ottla.errors import ConfigError, RecordsRefusedError, RecordTooLargeError

BULK_MIN_RECORDS = 16
"""From this number of plain records, one `send_many` is faster than single sends."""
PERMANENT_ERRORS = (RecordTooLargeError, RecordsRefusedError)
"""Errors that a retry would repeat."""
NO_TOPIC = "no topic for a record to send: set `to`, or the topic of Outgoing"


class ResultDelivery:
    """The records sent since the last commit, and their failures."""

    def __init__(self, producer: Any, to: str | None) -> None:
        self._producer = producer
        self._to = to
        self._can_send_in_bulk = not producer.config.interceptor_classes  # interceptors receive records one by one
        self._failures: list[BaseException] = []
        self._receipts: list[Any] = []

    def send(self, results: Sequence[Any]) -> Calls[None]:
        """Queue the results; waits while the producer's buffer is full."""
        if (
            self._to is not None
            and self._can_send_in_bulk
            and len(results) >= BULK_MIN_RECORDS
            and {bytes}.issuperset(map(type, results))
        ):
            yield from self._send_many(self._to, results, None)
            return
        for topic, records in self._by_topic(results).items():
            if self._can_send_in_bulk and len(records) >= BULK_MIN_RECORDS and all(map(is_plain, records)):
                yield from self._send_many(topic, [each.value for each in records], [each.key for each in records])
            else:
                for each in records:
                    yield from self._send_one(topic, each)

    def failures(self) -> Iterator[BaseException]:
        """Yield the failures known so far."""
        yield from self._failures
        for receipt in self._receipts:
            for future in receipt.futures:
                error = future.exception() if future.done() else None
                if error is not None:
                    yield error

    def find_permanent_error(self) -> BaseException | None:
        """Return the first failure that a retry would repeat, or None."""
        return next((each for each in self.failures() if isinstance(each, PERMANENT_ERRORS)), None)

    def clear(self) -> None:
        """Clear the failures and receipts for the next commit."""
        self._failures.clear()
        self._receipts.clear()

    def _by_topic(self, results: Sequence[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for result in results:
            each = Outgoing(result) if type(result) is bytes else result
            topic = each.topic or self._to
            if topic is None:
                raise ConfigError(NO_TOPIC)
            found.setdefault(topic, []).append(each)
        return found

    def _send_many(self, topic: str, values: Sequence[Any], keys: Sequence[Any] | None) -> Calls[None]:
        named = None if keys is None or not any(key is not None for key in keys) else keys
        receipt = yield partial(self._producer.send_many, topic, values, keys=named)
        self._receipts.append(receipt)

    def _send_one(self, topic: str, each: Any) -> Calls[None]:
        if not isinstance(each, Outgoing):
            receipt = yield partial(self._producer.send_table, topic, each.table, headers=each.headers)
            self._receipts.append(receipt)
            return
        yield partial(
            self._producer.send,
            topic,
            each.value,
            key=each.key,
            partition=each.partition,
            timestamp=each.timestamp,
            headers=each.headers,
            on_delivery=self._delivered,
        )

    def _delivered(self, metadata: object, error: BaseException | None) -> None:
        if error is not None:
            self._failures.append(error)


def is_plain(each: Any) -> bool:
    """Return True if the record has only a key and a value."""
    return isinstance(each, Outgoing) and each.partition is None and each.timestamp is None and each.headers is None
