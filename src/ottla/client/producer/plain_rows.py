"""Lists of plain keys and values as rows of columns, by partition: what `send_many` sends.

What `table` is for Arrow, without Arrow. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.client.interface.arguments import checked_list
from ottla.client.producer.partitioner import ANY, Partitioner, anywhere, by_key
from ottla.records.binary_column import BinaryColumn, column_of
from ottla.records.columns import Rows
from ottla.records.murmur2 import partitions_for

Plain = list[bytes | None]
PIECE_BYTES = 256 * 1024 * 1024
"""A column holds less than 2 GiB."""


def by_partition(
    values: Plain, keys: Plain | None, topic: str, partitions: int, partitioner: Partitioner, now_ms: int
) -> Iterator[tuple[int, Rows]]:
    """Rows that go to the same partition (`ANY`: each batch may go to another), in their order within it."""
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"there are {len(values)} values and {len(keys)} keys: give a key, or None, for each value")
    for some_values, some_keys in pieces(values, keys):
        for partition, these, theirs in split(some_values, some_keys, topic, partitions, partitioner):
            count = len(these)
            column = BinaryColumn.of_nulls(count) if theirs is None else column_of(theirs)
            yield partition, Rows(memoryview(array("q", [now_ms]) * count), column, column_of(these))


def plain(
    what: str, items: Iterable[Any], serializer: Any, serialized: Callable[[Any, Any], bytes | None]
) -> list[bytes | None]:
    """The items serialized; what is bytes already is not looked at one by one. TypeError where they are no list."""
    listed = items if isinstance(items, list) else checked_list(what, items, "[b'one', b'two']")
    if serializer is None and {bytes, type(None)}.issuperset(map(type, listed)):
        return listed
    return [serialized(item, serializer) for item in listed]


def pieces(values: Plain, keys: Plain | None) -> Iterator[tuple[Plain, Plain | None]]:
    """Halves of halves, until each is small enough."""
    if len(values) > 1 and size_of(values) + size_of(keys or []) > PIECE_BYTES:
        half = len(values) // 2
        yield from pieces(values[:half], keys and keys[:half])
        yield from pieces(values[half:], keys and keys[half:])
    elif values:
        yield values, keys


def split(
    values: Plain, keys: Plain | None, topic: str, partitions: int, partitioner: Partitioner
) -> Iterator[tuple[int, Plain, Plain | None]]:
    """The values and keys of each partition."""
    if partitions == 1 or partitioner is anywhere or (partitioner is by_key and keys is None):
        yield (0 if partitions == 1 else ANY), values, keys
        return
    known: Plain = [None] * len(values) if keys is None else keys
    if partitioner is by_key:
        chosen: Sequence[int] = partitions_for(column_of(known), partitions).tolist()
    else:
        chosen = [partitioner(topic, key, value, partitions) for key, value in zip(known, values, strict=True)]
    groups: dict[int, tuple[list[bytes | None], list[bytes | None]]] = {}
    for partition, key, value in zip(chosen, known, values, strict=True):
        these, theirs = groups.get(partition) or groups.setdefault(partition, ([], []))
        these.append(value)
        theirs.append(key)
    if groups and max(groups) >= partitions:
        raise ValueError(f"the partitioner chose partition {max(groups)} of {topic!r}, which has {partitions}")
    for partition in sorted(groups):
        yield partition, *groups[partition]


def size_of(items: Plain) -> int:
    return sum(map(len, filter(None, items)))
