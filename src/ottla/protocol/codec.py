"""`Reader` and `Writer` decode and encode messages by executing a `Plan`.

 Plain Python, compiled with the C types of codec.pxd. Every read advances by `take`, so that a truncated message is
always detected. Every length is compared with the remaining bytes before it is used; the nesting is limited by the
plan. Unknown tagged fields are skipped and not kept, since no message is forwarded (KIP-482).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ottla.errors import UnsupportedVersionError
from ottla.model import Buffer, FileSlice, Part
from ottla.protocol.errors import EncodeError, MalformedError

INT8, INT16, INT32, INT64, UINT16, UINT32, BOOL, STRING, BYTES, RECORDS, ARRAY, STRUCT, UUID, FLOAT64, ABSENT = range(
    15
)
KINDS = {
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint16": UINT16,
    "uint32": UINT32,
    "bool": BOOL,
    "string": STRING,
    "bytes": BYTES,
    "records": RECORDS,
    "array": ARRAY,
    "struct": STRUCT,
    "uuid": UUID,
    "float64": FLOAT64,
    "absent": ABSENT,
}
NAMES = {kind: name for name, kind in KINDS.items()}

BIG_BYTES = 4096
"""Byte fields of at least this size become parts of their own, without a copy."""
LONGEST_STRING = 0x7FFF
"""Kafka's limit of strings in bytes, for both encodings of lengths."""
SURE_STRING = LONGEST_STRING // 3
"""Clients in C may send strings that are not UTF-8.

As in Kafka, U+FFFD replaces invalid bytes; it takes three bytes.
"""
LONGEST = 0x7FFFFFFF
"""Kafka's limit of bytes and arrays."""
DOUBLE = struct.Struct(">d")
BOUNDS = {
    INT8: (-(2**7), 2**7 - 1),
    INT16: (-(2**15), 2**15 - 1),
    INT32: (-(2**31), 2**31 - 1),
    INT64: (-(2**63), 2**63 - 1),
    UINT16: (0, 2**16 - 1),
    UINT32: (0, 2**32 - 1),
}
BAD_VALUE = (EncodeError, TypeError, AttributeError, ValueError, OverflowError, struct.error)
"""The errors of encoding a value of the wrong type or size."""


class Step:
    def __init__(
        self,
        kind: int,
        name: str,
        nullable: bool = False,
        item: Any = None,
        default: Any = None,
        least_bytes: int = 0,
        ignorable: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.nullable = nullable
        self.least, self.most = BOUNDS.get(kind, (0, 0))
        self.width = self.most.bit_length() // 8 + (1 if self.least else 0)
        self.item = item
        """An array's item as a Step, a struct's Plan."""
        self.default = default
        self.least_bytes = least_bytes
        self.ignorable = ignorable
        """For an absent field: true if a value that is not the default is dropped, false if it is rejected."""


class Plan:
    """The steps of one message class in one version, in wire order; absent fields keep their position."""

    def __init__(
        self,
        make: Callable[..., Any],
        steps: list[Step],
        tags: dict[int, tuple[int, Step]],
        flexible: bool,
        version: int,
    ) -> None:
        self.make = make
        self.steps = steps
        self.written = [step for step in steps if step.kind != ABSENT]
        self.refused = [step for step in steps if step.kind == ABSENT and not step.ignorable]
        """Fields that this version lacks, and that must have their default values."""
        self.version = version
        self.tags = tags
        """Tag → the field's index in `steps`, and its step."""
        self.flexible = flexible


class Reader:
    """Decodes values from a buffer; malformed data raises MalformedError."""

    def __init__(self, source: Buffer, position: int = 0) -> None:
        self.source = memoryview(source)
        self.octets = self.source
        self.position = position
        self.end = len(self.source)

    def read(self, plan: Plan) -> Any:
        """Return the message at the current position."""
        return self.structure(plan)

    def finish(self) -> None:
        """Raise MalformedError if bytes remain."""
        if self.position != self.end:
            raise MalformedError(f"{self.end - self.position} bytes are left over at its end")

    def take(self, size: int) -> int:
        """Advance by `size` bytes; return their start."""
        start = self.position
        if size < 0 or size > self.end - start:
            raise MalformedError(f"{size} bytes are announced but {self.end - start} are left")
        self.position = start + size
        return start

    def integer(self, width: int) -> int:
        start = self.take(width)
        value = self.octets[start]
        if value > 127:
            value -= 256
        for i in range(start + 1, start + width):
            value = value * 256 + self.octets[i]
        return value

    def uvarint(self) -> int:
        """Return an unsigned number of up to 32 bits, seven per byte."""
        value = 0
        shift = 0
        while shift < 35:
            octet = self.octets[self.take(1)]
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
            shift += 7
        raise MalformedError("a variable-length number exceeds 32 bits")

    def value(self, step: Step, flexible: bool) -> Any:
        kind = step.kind
        if kind <= INT64:
            return self.integer(1 << kind)
        if kind == ABSENT:
            return step.default
        if kind == BOOL:
            return self.integer(1) != 0
        if kind == STRUCT:
            if step.nullable and self.integer(1) < 0:  # KIP-893
                return None
            return self.structure(step.item)
        if kind == UUID:
            start = self.take(16)
            return uuid_of(bytes(self.source[start : start + 16]))
        if kind == UINT16:
            return self.integer(2) & 0xFFFF
        if kind == UINT32:
            return self.integer(4) & 0xFFFFFFFF
        if kind == FLOAT64:
            return DOUBLE.unpack_from(self.source, self.take(8))[0]
        return self.sized(step, flexible)

    def sized(self, step: Step, flexible: bool) -> Any:
        """Return a value with a preceding length: string, bytes, records or an array."""
        kind = step.kind
        size = self.uvarint() - 1 if flexible else self.integer(2 if kind == STRING else 4)
        if size < 0:
            if step.nullable:
                return None  # any negative length, as in Kafka
            raise MalformedError("must not be null" if size == -1 else f"its length is {size}")
        if kind == ARRAY:
            return self.array(step.item, size, flexible)
        if kind == STRING and size > LONGEST_STRING:
            raise MalformedError(f"a text of {size} bytes; the limit is {LONGEST_STRING}")
        start = self.take(size)
        if kind == RECORDS:
            return self.source[start : start + size]
        if kind == BYTES:
            return bytes(self.source[start : start + size])
        text = str(self.source[start : start + size], "utf-8", "replace")
        if size > SURE_STRING:
            ensure_fits(text)
        return text

    def array(self, item: Step, size: int, flexible: bool) -> list[Any]:
        if size * item.least_bytes > self.end - self.position:
            raise MalformedError(f"{size} items are announced but {self.end - self.position} bytes are left")
        items: list[Any] = []
        try:
            for _ in range(size):
                items.append(self.value(item, flexible))  # noqa: PERF401 - a comprehension would hide the index
        except MalformedError as error:
            error.under(f"[{len(items)}]")
            raise
        return items

    def structure(self, plan: Plan) -> Any:
        values: list[Any] = []
        try:
            for step in plan.steps:
                values.append(self.value(step, plan.flexible))  # noqa: PERF401
        except MalformedError as error:
            error.under(plan.steps[len(values)].name)
            raise
        if plan.flexible:
            count = self.uvarint()
            if count:
                self.tagged(plan, values, count)
        return plan.make(*values)

    def tagged(self, plan: Plan, values: list[Any], count: int) -> None:
        for _ in range(count):
            tag = self.uvarint()
            size = self.uvarint()
            start = self.take(size)
            known = plan.tags.get(tag)
            if known is not None:
                values[known[0]] = self.tagged_value(known[1], start)

    def tagged_value(self, step: Step, start: int) -> Any:
        """Return the value that starts at `start` and must end at the current position."""
        stop, end = self.position, self.end
        self.position, self.end = start, stop
        try:
            value = self.marked(step) if step.kind == STRUCT and step.nullable else self.value(step, True)
            self.finish()
        except MalformedError as error:
            error.under(step.name)
            raise
        self.end = end
        return value

    def marked(self, step: Step) -> Any:
        """Return a tagged struct that may be null: 0 means null, 1 is followed by the struct."""
        start, mark = self.position, self.uvarint()
        if mark > 1:
            raise MalformedError(f"it is neither null (0) nor there (1): {mark}")
        if mark == 0:
            if self.position == self.end:
                return None
            self.position = (
                start  # Ottla's brokers first wrote no mark; such a struct starts with a four-byte number below 2 ** 24
            )
        return self.structure(step.item)


class Writer:
    """Collects the bytes of a message; large byte fields are not copied."""

    def __init__(self, front: bytes = b"") -> None:
        self.parts: list[Any] = []
        self.out = bytearray(front)

    def write(self, plan: Plan, message: Any) -> list[Part]:
        """Return the parts of `front` and the encoded message; a writer writes once."""
        self.structure(plan, message)
        if self.out or not self.parts:
            self.parts.append(self.out)
        return self.parts

    def integer(self, value: int, width: int) -> None:
        out = self.out
        while width > 0:
            width -= 1
            out.append((value >> (8 * width)) & 0xFF)

    def number(self, step: Step, value: Any) -> None:
        """Write an integer; raise an error if it is none or does not fit."""
        if not isinstance(value, int):
            raise TypeError
        number = value
        if number < step.least or number > step.most:
            raise OverflowError
        self.integer(number, step.width)

    def uvarint(self, value: int) -> None:
        out = self.out
        while value >= 0x80:
            out.append((value & 0x7F) | 0x80)
            value >>= 7
        out.append(value)

    def length(self, size: int, kind: int, flexible: bool) -> None:
        if size > (LONGEST_STRING if kind == STRING else LONGEST):
            raise EncodeError(f"is too long: {size}, and the limit is {LONGEST_STRING if kind == STRING else LONGEST}")
        if flexible:
            self.uvarint(size + 1)
        else:
            self.integer(size, 2 if kind == STRING else 4)

    def value(self, step: Step, value: Any, flexible: bool) -> None:
        kind = step.kind
        if kind <= UINT32:
            self.number(step, value)
        elif kind == BOOL:
            self.out.append(1 if value else 0)
        elif kind == STRUCT:
            self.optional(step, value)
        elif kind == UUID:
            self.out += value.bytes
        elif kind == FLOAT64:
            self.out += DOUBLE.pack(value)
        else:
            self.sized(step, value, flexible)

    def optional(self, step: Step, value: Any) -> None:
        """Write a struct, with a preceding mark if it is nullable."""
        if value is None and not step.nullable:
            raise EncodeError("must not be None")
        if step.nullable:
            self.out.append(0xFF if value is None else 1)
        if value is not None:
            self.structure(step.item, value)

    def marked(self, step: Step, value: Any) -> None:
        """Write a tagged struct that may be null."""
        self.out.append(0 if value is None else 1)
        if value is not None:
            self.structure(step.item, value)

    def sized(self, step: Step, value: Any, flexible: bool) -> None:
        """Write a value with a preceding length: string, bytes, records or an array."""
        kind = step.kind
        if value is None:
            if not step.nullable:
                raise EncodeError("must not be None")
            self.length(-1, kind, flexible)
        elif kind == ARRAY:
            self.length(len(value), kind, flexible)
            self.array(step.item, value, flexible)
        elif kind == STRING:
            data = value.encode()
            self.length(len(data), kind, flexible)
            self.out += data
        else:
            parts = parts_of(value)
            self.length(sum(map(len, parts)), kind, flexible)
            for part in parts:
                self.part(part)

    def part(self, part: Any) -> None:
        """Write bytes: copied if they are few, otherwise (or in a file) as a part of their own."""
        if len(part) < BIG_BYTES and not isinstance(part, FileSlice):
            self.out += part
        else:
            if self.out:
                self.parts.append(self.out)
                self.out = bytearray()
            self.parts.append(part)

    def array(self, item: Step, values: Any, flexible: bool) -> None:
        if isinstance(values, (str, bytes)):
            raise TypeError  # also a sequence, but not an array
        for index, value in enumerate(values):
            try:
                self.value(item, value, flexible)
            except BAD_VALUE as error:
                raise located(error, item, value, f"[{index}]") from None

    def structure(self, plan: Plan, message: Any) -> None:
        for step in plan.written:
            value = getattr(message, step.name)
            try:
                self.value(step, value, plan.flexible)
            except BAD_VALUE as error:
                raise located(error, step, value, step.name) from None
        if plan.refused:
            refuse_losses(plan, message)
        if plan.flexible:
            if plan.tags:
                self.tagged(plan, message)
            else:
                self.out.append(0)

    def tagged(self, plan: Plan, message: Any) -> None:
        """Write the tagged fields: values that differ from their defaults, in the order of the tags."""
        present: list[Any] = []
        for tag, known in plan.tags.items():
            step: Step = known[1]
            value = getattr(message, step.name)
            if differs(value, step.default) or (step.kind == STRUCT and step.nullable):
                present.append((tag, encode_tagged(step, value)))
        self.uvarint(len(present))
        for tag, data in sorted(present):
            self.uvarint(tag)
            self.uvarint(len(data))
            self.out += data


def encode_tagged(step: Step, value: Any) -> bytes:
    """Return an encoded tagged value, since its size precedes it."""
    writer = Writer()
    try:
        if step.kind == STRUCT and step.nullable:
            writer.marked(step, value)
        else:
            writer.value(step, value, True)
    except BAD_VALUE as error:
        raise located(error, step, value, step.name) from None
    return b"".join([*writer.parts, writer.out])


def differs(value: Any, default: Any) -> bool:
    """Return True if a field was set; an empty list equals the empty tuple of a default."""
    if value is None or default is None:
        return value is not default
    if isinstance(default, tuple):
        return len(value) > 0
    return bool(value != default)


def refuse_losses(plan: Plan, message: Any) -> None:
    """Raise UnsupportedVersionError if the message has a value that this version cannot represent."""
    for step in plan.refused:
        value = getattr(message, step.name)
        if differs(value, step.default):
            name = type(message).__name__
            raise UnsupportedVersionError(
                f"{name} v{plan.version} has no field {step.name}, and {repr(value)[:100]} must not be lost;"
                f" use a newer version or leave it at {step.default!r}"
            )


def located(error: Exception, step: Step, value: Any, name: str) -> EncodeError:
    """Return the error for a value that its field cannot represent, with the field's name."""
    if not isinstance(error, EncodeError):
        error = EncodeError(f"{repr(value)[:100]} is not {NAMES[step.kind]}")
    error.under(name)
    return error


def ensure_fits(text: str) -> None:
    """Raise MalformedError for a decoded string that is too long to be encoded again."""
    size = len(text.encode())
    if size > LONGEST_STRING:
        raise MalformedError(f"no UTF-8, and {size} bytes with U+FFFD in its place; the limit is {LONGEST_STRING}")


@lru_cache(maxsize=4096)
def uuid_of(octets: bytes) -> uuid.UUID:
    """Return the UUID of bytes; cached, because topic ids are repeated and creating a UUID is slow."""
    return uuid.UUID(bytes=octets)


def parts_of(value: Any) -> list[Any] | tuple[Any, ...]:
    """Return one or several parts; views of other item types become views of bytes."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return [part.cast("B") if isinstance(part, memoryview) and part.itemsize != 1 else part for part in parts]
