"""Convert lists of keys and values to columns, grouped by partition, for `send_many`.

The counterpart of `table` without Arrow. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ottla.client.interface.arguments import checked_list
from ottla.client.producer.partitioner import ANY, Partitioner, choose_any, choose_by_key
from ottla.records.binary_column import BinaryColumn, column_of
from ottla.records.columns import Rows
from ottla.records.murmur2 import partitions_for

Plain = list[bytes | None]
PIECE_BYTES = 256 * 1024 * 1024
"""A column is limited to 2 GiB."""


def group_by_partition(
    values: Plain, keys: Plain | None, topic: str, partitions: int, partitioner: Partitioner, now_ms: int
) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of each partition in order; with `ANY`, each batch may be sent to another partition."""
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"{len(values)} values and {len(keys)} keys: pass a key, or None, for each value")
    for some_values, some_keys in split_lists(values, keys):
        for partition, these, theirs in split_by_partition(some_values, some_keys, topic, partitions, partitioner):
            count = len(these)
            column = BinaryColumn.of_nulls(count) if theirs is None else column_of(theirs)
            yield partition, Rows(memoryview(array("q", [now_ms]) * count), column, column_of(these))


def serialize_items(
    what: str, items: Iterable[Any], serializer: Any, serialized: Callable[[Any, Any], bytes | None]
) -> list[bytes | None]:
    """Return the serialized items. A list of bytes is returned unchanged. Raises TypeError if it is not a list."""
    listed = items if isinstance(items, list) else checked_list(what, items, "[b'one', b'two']")
    if serializer is None and {bytes, type(None)}.issuperset(map(type, listed)):
        return listed
    return [serialized(item, serializer) for item in listed]


def split_lists(values: Plain, keys: Plain | None) -> Iterator[tuple[Plain, Plain | None]]:
    """Split the lists into halves until each is small enough."""
    if len(values) > 1 and count_bytes(values) + count_bytes(keys or []) > PIECE_BYTES:
        half = len(values) // 2
        yield from split_lists(values[:half], keys and keys[:half])
        yield from split_lists(values[half:], keys and keys[half:])
    elif values:
        yield values, keys


def split_by_partition(
    values: Plain, keys: Plain | None, topic: str, partitions: int, partitioner: Partitioner
) -> Iterator[tuple[int, Plain, Plain | None]]:
    """Yield the values and keys of each partition."""
    if partitions == 1 or partitioner is choose_any or (partitioner is choose_by_key and keys is None):
        yield (0 if partitions == 1 else ANY), values, keys
        return
    known: Plain = [None] * len(values) if keys is None else keys
    if partitioner is choose_by_key:
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


def count_bytes(items: Plain) -> int:
    return sum(map(len, filter(None, items)))
