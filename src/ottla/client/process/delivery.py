"""Sends what functions return: many plain records at once, others one by one, tables as tables.

In order within each topic. Errors are kept until it is asked for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ottla.client.process.calls import Calls
from ottla.client.process.outgoing import Outgoing
from ottla.errors import ConfigError, RecordsRefusedError, RecordTooLargeError

MANY = 16
"""From so many on it is worth while to send them together."""
POISON = (RecordTooLargeError, RecordsRefusedError)
"""What would happen again if it were tried again."""
NOWHERE = "there is a record to send and nowhere to send it: give `to`, or Outgoing a topic"


class Delivery:
    """What was sent since the last commit, and what of it failed."""

    def __init__(self, producer: Any, to: str | None) -> None:
        self._producer = producer
        self._to = to
        self._together = not producer.config.interceptor_classes  # which see records, one by one
        self._failures: list[BaseException] = []
        self._receipts: list[Any] = []

    def send(self, results: Sequence[Any]) -> Calls[None]:
        """Queue these; waits where the producer's buffer is full."""
        if self._to is not None and self._together and len(results) >= MANY and {bytes}.issuperset(map(type, results)):
            yield from self._send_many(self._to, results, None)
            return
        for topic, records in self._by_topic(results).items():
            if self._together and len(records) >= MANY and all(map(is_plain, records)):
                yield from self._send_many(topic, [each.value for each in records], [each.key for each in records])
            else:
                for each in records:
                    yield from self._send_one(topic, each)

    def failures(self) -> Iterator[BaseException]:
        """What is known to have failed."""
        yield from self._failures
        for receipt in self._receipts:
            for future in receipt.futures:
                error = future.exception() if future.done() else None
                if error is not None:
                    yield error

    def poison(self) -> BaseException | None:
        """A failure that would happen again."""
        return next((each for each in self.failures() if isinstance(each, POISON)), None)

    def forget(self) -> None:
        """What comes now is another commit's."""
        self._failures.clear()
        self._receipts.clear()

    def _by_topic(self, results: Sequence[Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for result in results:
            each = Outgoing(result) if type(result) is bytes else result
            topic = each.topic or self._to
            if topic is None:
                raise ConfigError(NOWHERE)
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
    """Whether it is but a key and a value."""
    return isinstance(each, Outgoing) and each.partition is None and each.timestamp is None and each.headers is None
