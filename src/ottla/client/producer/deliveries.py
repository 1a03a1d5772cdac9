"""The callbacks of a batch's records, called one after the other when the batch has its outcome.

What a callback is told of its record waits as plain numbers beside it: an object for each record would cost more than
the record itself, and be looked at by every run of the garbage collector.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.runtime.future import survive
from ottla.model import RecordMetadata
from ottla.records import raw

OnDelivery = Callable[[RecordMetadata | None, Exception | None], None]
FIRST_COUNT = 16
FACTS = 4
"""Index, timestamp, and the sizes of key and value."""
NUMBER_BYTES = 8


class Deliveries:
    """Callbacks in the order of their records."""

    __slots__ = ("callbacks", "count", "facts")

    def __init__(self) -> None:
        self.callbacks: list[OnDelivery] = []
        self.count = 0
        self.facts = room_for(FIRST_COUNT)

    def add(self, callback: OnDelivery, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        """Note what to call for the record at `index` of the batch."""
        at = FACTS * self.count
        if at == len(self.facts):
            self.grow()
        self.facts[at] = index
        self.facts[at + 1] = timestamp
        self.facts[at + 2] = key_size
        self.facts[at + 3] = value_size
        self.callbacks.append(callback)
        self.count += 1

    def grow(self) -> None:
        """Make room for twice as many."""
        facts = room_for(2 * self.count)
        facts[: FACTS * self.count] = self.facts
        self.facts = facts

    def tell(self, topic: str, partition: int, base_offset: int, log_append_time: int) -> None:
        """All records were written, the first one at `base_offset` (-1: nobody knows where)."""
        for number in range(self.count):
            at = FACTS * number
            offset = -1 if base_offset < 0 else base_offset + self.facts[at]
            timestamp = self.facts[at + 1] if log_append_time < 0 else log_append_time
            metadata = new_metadata(topic, partition, offset, timestamp, self.facts[at + 2], self.facts[at + 3])
            try:
                self.callbacks[number](metadata, None)
            except BaseException as raised:
                survive(raised)

    def fail(self, error_of: Callable[[int], Exception | None]) -> None:
        """None was written; `error_of` an index is what to tell."""
        for number in range(self.count):
            error = error_of(self.facts[FACTS * number])
            try:
                self.callbacks[number](None, error)
            except BaseException as raised:
                survive(raised)

    def hand_over(self, part_of: Callable[[int], tuple[Deliveries, int]]) -> None:
        """The batch was split: each callback goes where its record went, the new list and the index there."""
        for number in range(self.count):
            at = FACTS * number
            part, index = part_of(self.facts[at])
            part.add(self.callbacks[number], index, self.facts[at + 1], self.facts[at + 2], self.facts[at + 3])


def new_metadata(
    topic: str, partition: int, offset: int, timestamp: int, key_size: int, value_size: int
) -> RecordMetadata:
    """`RecordMetadata(…)` without the Python function that it comes to."""
    return raw.six(RecordMetadata, topic, partition, offset, timestamp, key_size, value_size)


def room_for(count: int) -> memoryview:
    """Memory for the facts of so many records."""
    return memoryview(raw.allocate(FACTS * NUMBER_BYTES * count)).cast("q")
