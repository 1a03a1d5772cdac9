"""Convert objects of dataclasses, pydantic models and msgspec structs to dicts, and back."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

KEPT = (bytes, bytearray, memoryview, datetime, date, time, timedelta, Decimal, UUID)
"""Types that serializers take as they are."""
PLAIN = (dict, list, tuple, str, bytes, int, float, bool, type(None))


def to_plain(obj: Any) -> Any:
    """Return a dict for an object of a dataclass, a pydantic model or a msgspec struct; other values unchanged."""
    kind = type(obj)
    if kind in PLAIN:
        return obj
    dump = getattr(obj, "model_dump", None)
    if dump is not None:
        return dump(by_alias=True)
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__struct_fields__") or hasattr(kind, "__attrs_attrs__"):
        return msgspec.to_builtins(obj, builtin_types=KEPT, enc_hook=to_plain)
    return obj


def to_json_ready(obj: Any) -> Any:
    """Return the object with only types of JSON in it: dates as text, bytes as base64."""
    dump = getattr(obj, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    return msgspec.to_builtins(obj, enc_hook=to_json_ready)


def from_plain(value: Any, into: Any) -> Any:
    """Return an object of the class `into` for a decoded value."""
    validate = getattr(into, "model_validate", None)
    if validate is not None:
        return validate(value)
    return msgspec.convert(value, into, strict=False, builtin_types=KEPT)
