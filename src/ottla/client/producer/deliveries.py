"""The callbacks of a batch's records, called in order when the batch has a result.

The metadata of each callback is stored as plain numbers: an object per record would cost more than the record itself,
and every run of the garbage collector would visit it.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.runtime.future import log_callback_error
from ottla.model import RecordMetadata
from ottla.records import raw

OnDelivery = Callable[[RecordMetadata | None, Exception | None], None]
FIRST_COUNT = 16
FACTS = 4
"""Index, timestamp, and the sizes of key and value."""
NUMBER_BYTES = 8


class DeliveryCallbacks:
    """Callbacks in the order of their records."""

    __slots__ = ("callbacks", "count", "facts")

    def __init__(self) -> None:
        self.callbacks: list[OnDelivery] = []
        self.count = 0
        self.facts = allocate_facts(FIRST_COUNT)

    def add(self, callback: OnDelivery, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        """Add the callback of the record at `index` of the batch."""
        at = FACTS * self.count
        if at == len(self.facts):
            self.grow_facts()
        self.facts[at] = index
        self.facts[at + 1] = timestamp
        self.facts[at + 2] = key_size
        self.facts[at + 3] = value_size
        self.callbacks.append(callback)
        self.count += 1

    def grow_facts(self) -> None:
        """Double the memory for the facts."""
        facts = allocate_facts(2 * self.count)
        facts[: FACTS * self.count] = self.facts
        self.facts = facts

    def call_with_metadata(self, topic: str, partition: int, base_offset: int, log_append_time: int) -> None:
        """Call the callbacks after success; the first record is at `base_offset` (-1: unknown)."""
        for number in range(self.count):
            at = FACTS * number
            offset = -1 if base_offset < 0 else base_offset + self.facts[at]
            timestamp = self.facts[at + 1] if log_append_time < 0 else log_append_time
            metadata = new_metadata(topic, partition, offset, timestamp, self.facts[at + 2], self.facts[at + 3])
            try:
                self.callbacks[number](metadata, None)
            except BaseException as raised:
                log_callback_error(raised)

    def call_with_errors(self, error_of: Callable[[int], Exception | None]) -> None:
        """Call the callbacks after a failure; `error_of` returns the error of an index."""
        for number in range(self.count):
            error = error_of(self.facts[FACTS * number])
            try:
                self.callbacks[number](None, error)
            except BaseException as raised:
                log_callback_error(raised)

    def move_to_parts(self, part_of: Callable[[int], tuple[DeliveryCallbacks, int]]) -> None:
        """Pass each callback to the part of a split batch that contains its record."""
        for number in range(self.count):
            at = FACTS * number
            part, index = part_of(self.facts[at])
            part.add(self.callbacks[number], index, self.facts[at + 1], self.facts[at + 2], self.facts[at + 3])


def new_metadata(
    topic: str, partition: int, offset: int, timestamp: int, key_size: int, value_size: int
) -> RecordMetadata:
    """Create a `RecordMetadata` without calling a Python function."""
    return raw.six(RecordMetadata, topic, partition, offset, timestamp, key_size, value_size)


def allocate_facts(count: int) -> memoryview:
    """Allocate memory for the facts of `count` records."""
    return memoryview(raw.allocate(FACTS * NUMBER_BYTES * count)).cast("q")
