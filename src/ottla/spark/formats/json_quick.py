"""What Arrow's JSON reader can be trusted with, and what it is asked for instead of what it does otherwise than Spark.

Dates, times and binary are asked for as text and converted here, where that is the same as Spark's conversion of
whatever text is there; else the block is `Unusual`.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
ZONED = TIME + r"(Z|[+-][0-9]{2}:[0-9]{2})$"
LOCAL = TIME + "$"
BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
DIRECT: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
)
"""Types that Arrow's reader reads as Spark does, or refuses."""


class Unusual(ValueError):
    """A block that has to be read row by row."""


def quick_type(kind: Any, zone: str) -> Any:
    """The type to ask of Arrow's reader; None if it should not be asked at all."""
    if any(test(kind) for test in DIRECT):
        return kind
    if any(test(kind) for test in (pa.types.is_binary, pa.types.is_date32, pa.types.is_timestamp)):
        return pa.string()
    if pa.types.is_list(kind):
        inner = quick_type(kind.value_type, zone)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(kind):
        fields = [(one.name, quick_type(one.type, zone)) for one in kind.fields]
        return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    return None


def settled(values: Any, kind: Any, zone: str) -> Any:
    """What was asked for, as what it should be. Unusual, or ArrowInvalid, if that takes more than Arrow."""
    if pa.types.is_decimal(kind):
        values.validate(full=True)  # The reader brings numbers that have more digits than the type, by its scale.
        return values
    if values.type.equals(kind) and not holds_decimals(kind):
        return values
    if pa.types.is_binary(kind):
        return binaries(values)
    if pa.types.is_date32(kind):
        return dates(values)
    if pa.types.is_timestamp(kind):
        return local_times(values) if kind.tz is None else times(values, zone)
    if pa.types.is_list(kind):
        inner = settled(values.values, kind.value_type, zone)
        return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], values.null_count, values.offset, [inner])
    assert pa.types.is_struct(kind)
    # `field` leaves out what the struct's own nulls hide, and its offset; `flatten` does not.
    inners = [settled(inner, one.type, zone) for inner, one in zip(values.flatten(), kind.fields, strict=True)]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(inners, fields=kind.fields, mask=mask)


def holds_decimals(kind: Any) -> bool:
    """Whether there are any in values of the type."""
    if pa.types.is_list(kind):
        return holds_decimals(kind.value_type)
    return (
        any(holds_decimals(one.type) for one in kind.fields) if pa.types.is_struct(kind) else pa.types.is_decimal(kind)
    )


def binaries(text: Any) -> Any:
    """What the text is in base64."""
    found = ordinary(text, BASE64).to_pylist()
    return pa.array([None if one is None else a2b_base64(one) for one in found], pa.binary())


def dates(text: Any) -> Any:
    return ordinary(text, DATE).cast(pa.date32())


def local_times(text: Any) -> Any:
    return ordinary(text, LOCAL).cast(pa.timestamp("us"))


def times(text: Any, zone: str) -> Any:
    """Moments: all of them with a zone, or none and then of `zone`."""
    if alike(text, ZONED):
        return text.cast(pa.timestamp("us", "UTC"))
    local = local_times(text)
    if zone == "UTC":
        return local.cast(pa.timestamp("us", "UTC"))
    # Of two such moments Java takes the earlier; one that does not exist is left to whoever knows what it does then.
    assume: Any = pc.assume_timezone
    moments = assume(local, timezone=zone, ambiguous="earliest", nonexistent="raise")
    return moments.cast(pa.timestamp("us", "UTC"))


def ordinary(text: Any, pattern: str) -> Any:
    if not alike(text, pattern):
        raise Unusual
    return text


def alike(text: Any, pattern: str) -> bool:
    """Whether all that is not null matches."""
    found: Any = pc.all(pc.match_substring_regex(text, pattern))
    return found.as_py() is not False
