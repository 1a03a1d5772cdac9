"""The types that Arrow's JSON reader reads as Spark does, and conversions for other types.

Dates, times and binary are read as text and converted here if the result is the same as Spark's for the given text.
Otherwise the block is `Unusual`.
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
"""Types that Arrow's reader reads as Spark does, or rejects."""


class Unusual(ValueError):
    """A block that must be decoded row by row."""


def quick_type(kind: Any, zone: str) -> Any:
    """Return the type for Arrow's reader; None if the reader cannot be used."""
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


def convert_values(values: Any, kind: Any, zone: str) -> Any:
    """Return the values of Arrow's reader converted to `kind`.

    Unusual or ArrowInvalid if they cannot be converted here.
    """
    if pa.types.is_decimal(kind):
        values.validate(
            full=True
        )  # The reader returns numbers with more digits than the type, for instance in the scale.
        return values
    if values.type.equals(kind) and not has_decimals(kind):
        return values
    if pa.types.is_binary(kind):
        return binaries(values)
    if pa.types.is_date32(kind):
        return dates(values)
    if pa.types.is_timestamp(kind):
        return local_times(values) if kind.tz is None else times(values, zone)
    if pa.types.is_list(kind):
        inner = convert_values(values.values, kind.value_type, zone)
        return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], values.null_count, values.offset, [inner])
    assert pa.types.is_struct(kind)
    # Unlike `field`, `flatten` applies the struct's own nulls and its offset.
    inners = [convert_values(inner, one.type, zone) for inner, one in zip(values.flatten(), kind.fields, strict=True)]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(inners, fields=kind.fields, mask=mask)


def has_decimals(kind: Any) -> bool:
    """Return True if the type contains decimals."""
    if pa.types.is_list(kind):
        return has_decimals(kind.value_type)
    return any(has_decimals(one.type) for one in kind.fields) if pa.types.is_struct(kind) else pa.types.is_decimal(kind)


def binaries(text: Any) -> Any:
    """Return the bytes of base64 text."""
    found = ordinary(text, BASE64).to_pylist()
    return pa.array([None if one is None else a2b_base64(one) for one in found], pa.binary())


def dates(text: Any) -> Any:
    return ordinary(text, DATE).cast(pa.date32())


def local_times(text: Any) -> Any:
    return ordinary(text, LOCAL).cast(pa.timestamp("us"))


def times(text: Any, zone: str) -> Any:
    """Return times: all with a zone, or none, and then in `zone`."""
    if has_pattern(text, ZONED):
        return text.cast(pa.timestamp("us", "UTC"))
    local = local_times(text)
    if zone == "UTC":
        return local.cast(pa.timestamp("us", "UTC"))
    # Java uses the earlier of two ambiguous times. A time that does not exist raises an error, so the rows are decoded
    # one by one.
    assume: Any = pc.assume_timezone
    moments = assume(local, timezone=zone, ambiguous="earliest", nonexistent="raise")
    return moments.cast(pa.timestamp("us", "UTC"))


def ordinary(text: Any, pattern: str) -> Any:
    if not has_pattern(text, pattern):
        raise Unusual
    return text


def has_pattern(text: Any, pattern: str) -> bool:
    """Return True if all values other than null match."""
    found: Any = pc.all(pc.match_substring_regex(text, pattern))
    return found.as_py() is not False
