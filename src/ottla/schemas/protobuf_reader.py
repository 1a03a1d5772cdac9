"""Read Protobuf messages into columns without a Python object for each value; compiled.

A message's bytes are scanned once. Items of repeated fields are added as they come. Of a singular field the last value
counts, so its position is kept, and it is read at the end; messages that come twice are joined, which merges them. The
order of columns is that of the reader's message; unknown fields are skipped.
Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from ottla.errors import SerializationError
from ottla.records import raw
from ottla.schemas.column_reader import (
    Action,
    BooleanBuilder,
    Builder,
    BytesBuilder,
    Cursor,
    FixedBuilder,
    IntBuilder,
    LongBuilder,
    StructBuilder,
)

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types."""
MAX_DEPTH = 100
DIRECT_NUMBERS = 256
"""The field numbers below this are found without a dict."""
MAX_SECONDS = 9_000_000_000_000
"""Moments beyond this do not fit in microseconds of 64 bits."""
MAX_SYMBOLS = 10_000
"""The symbols of an enum, with those for unknown numbers."""
MODULUS = 1 << 64
ZEROS = bytes(8)


def read_unsigned(cursor: Cursor) -> int:
    """Read a varint of 64 bits, as a signed number with the same bits."""
    value = cursor.number()
    value = (value << 1) ^ (value >> 63)
    if value > 0x7FFF_FFFF_FFFF_FFFF:  # not in the compiled form
        value -= MODULUS
    return value


def skip_field(cursor: Cursor, wire: int) -> int:
    """Move behind the value of a field."""
    if wire == VARINT:
        cursor.number()
    elif wire == FIXED64:
        cursor.skip(8)
    elif wire == BYTES:
        cursor.skip(read_size(cursor))
    elif wire == FIXED32:
        cursor.skip(4)
    elif wire == START_GROUP:
        skip_group(cursor)
    else:
        raise SerializationError(
            f"it has a field of wire type {wire}; it was written with another schema, or is damaged"
        )
    return 0


def skip_group(cursor: Cursor) -> int:
    cursor.depth += 1
    if cursor.depth > MAX_DEPTH:
        raise SerializationError(f"it is nested more than {MAX_DEPTH} times")
    while True:
        wire = read_unsigned(cursor) & 7
        if wire == END_GROUP:
            break
        skip_field(cursor, wire)
    cursor.depth -= 1
    return 0


def read_size(cursor: Cursor) -> int:
    """Read the size of a value, and check that so many bytes follow."""
    size = read_unsigned(cursor)
    if not 0 <= size <= cursor.stop - cursor.position:
        raise SerializationError("its bytes end within a field; it was written with another schema, or is damaged")
    return size


class FieldAction(Action):
    """Reads one value of a field. `wire` is its wire type."""

    __slots__ = ("builder", "wire", "zeros")

    def __init__(self, builder: Any, wire: int) -> None:
        self.builder = builder
        self.wire = wire
        self.zeros = raw.pointer(ZEROS)

    def add_zero(self) -> int:
        """Add the value of a field that is not there."""
        return 0


class BooleanAction(FieldAction):
    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        builder: BooleanBuilder = self.builder
        builder.add(read_unsigned(cursor) != 0)
        return 0

    def add_zero(self) -> int:
        builder: BooleanBuilder = self.builder
        builder.add(False)
        return 0


class IntAction(FieldAction):
    """Reads int32, uint32 and sint32; columns of uint32 have the same bits."""

    __slots__ = ("is_zigzag",)

    def __init__(self, builder: Any, is_zigzag: bool) -> None:
        FieldAction.__init__(self, builder, VARINT)
        self.is_zigzag = is_zigzag

    def read(self, cursor: Cursor) -> int:
        builder: IntBuilder = self.builder
        value = cursor.number() if self.is_zigzag else read_unsigned(cursor)
        value &= 0xFFFF_FFFF
        builder.add(value - 0x1_0000_0000 if value >= 0x8000_0000 else value)
        return 0

    def add_zero(self) -> int:
        builder: IntBuilder = self.builder
        builder.add(0)
        return 0


class LongAction(FieldAction):
    """Reads int64, uint64 and sint64; columns of uint64 have the same bits."""

    __slots__ = ("is_zigzag",)

    def __init__(self, builder: Any, is_zigzag: bool) -> None:
        FieldAction.__init__(self, builder, VARINT)
        self.is_zigzag = is_zigzag

    def read(self, cursor: Cursor) -> int:
        builder: LongBuilder = self.builder
        builder.add(cursor.number() if self.is_zigzag else read_unsigned(cursor))
        return 0

    def add_zero(self) -> int:
        builder: LongBuilder = self.builder
        builder.add(0)
        return 0


class FixedAction(FieldAction):
    """Reads float, double and the fixed numbers. Their bytes are those of Arrow."""

    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        builder: FixedBuilder = self.builder
        builder.add(cursor.data, cursor.skip(builder.width))
        return 0

    def add_zero(self) -> int:
        builder: FixedBuilder = self.builder
        builder.add(self.zeros, 0)
        return 0


class BytesAction(FieldAction):
    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        builder: BytesBuilder = self.builder
        size = read_size(cursor)
        builder.add(cursor.data, cursor.skip(size), size)
        return 0

    def add_zero(self) -> int:
        builder: BytesBuilder = self.builder
        builder.add(self.zeros, 0, 0)
        return 0


class EnumAction(FieldAction):
    """Reads the number of a symbol as a row of `symbols`; a number without a symbol becomes one."""

    __slots__ = ("rows", "symbols")

    def __init__(self, builder: Any, symbols: dict[int, str]) -> None:
        FieldAction.__init__(self, builder, VARINT)
        self.symbols = list(symbols.values())
        self.rows = {number: row for row, number in enumerate(symbols)}

    def read(self, cursor: Cursor) -> int:
        value = read_unsigned(cursor) & 0xFFFF_FFFF
        return self.add(value - 0x1_0000_0000 if value >= 0x8000_0000 else value)

    def add(self, value: int) -> int:
        builder: IntBuilder = self.builder
        row = self.rows.get(value)
        if row is None:
            row = len(self.symbols)
            if row >= MAX_SYMBOLS:
                raise SerializationError(f"an enum has more than {MAX_SYMBOLS} numbers without a symbol")
            self.rows[value] = row
            self.symbols.append(str(value))
        builder.add(row)
        return 0

    def add_zero(self) -> int:
        return self.add(0)


class TextAction(FieldAction):
    """Converts a message by a Python function, such as google.protobuf.Struct to JSON text."""

    __slots__ = ("convert",)

    def __init__(self, builder: Any, convert: Callable[[bytes], bytes]) -> None:
        FieldAction.__init__(self, builder, BYTES)
        self.convert = convert

    def read(self, cursor: Cursor) -> int:
        builder: BytesBuilder = self.builder
        size = read_size(cursor)
        start = cursor.skip(size)
        text: bytes = self.convert(raw.slice_of(cursor.octets, start, start + size))
        builder.add(raw.pointer(text), 0, len(text))
        return 0

    def add_zero(self) -> int:
        builder: BytesBuilder = self.builder
        text: bytes = self.convert(b"")
        builder.add(raw.pointer(text), 0, len(text))
        return 0


class MomentAction(FieldAction):
    """Reads a Timestamp or a Duration, seconds and nanoseconds, as microseconds."""

    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        builder: LongBuilder = self.builder
        seconds = nanos = 0
        end = read_size(cursor) + cursor.position
        outer = cursor.stop
        cursor.stop = end
        while cursor.position < end:
            tag = read_unsigned(cursor)
            if tag == 1 << 3:
                seconds = read_unsigned(cursor)
            elif tag == 2 << 3:
                nanos = read_unsigned(cursor)
            else:
                skip_field(cursor, tag & 7)
        cursor.stop = outer
        if not -MAX_SECONDS <= seconds <= MAX_SECONDS or not -999_999_999 <= nanos <= 999_999_999:
            raise SerializationError(f"a moment of {seconds} seconds and {nanos} nanoseconds is out of range")
        builder.add(seconds * 1_000_000 + nanos // 1000)
        return 0

    def add_zero(self) -> int:
        builder: LongBuilder = self.builder
        builder.add(0)
        return 0


class Field:
    """A field of a message: its action, and the handling of values that are missing or repeated."""

    __slots__ = ("action", "column", "fills", "is_message", "is_repeated", "oneof", "repeated")

    def __init__(
        self,
        action: FieldAction,
        column: Builder,
        repeated: Any,
        fills: bool,
        is_message: bool,
        oneof: int,
    ) -> None:
        self.action = action
        self.column = column
        self.repeated = repeated
        self.is_repeated = repeated is not None
        self.fills = fills
        self.is_message = is_message
        self.oneof = oneof
        """The number of its oneof; -1 without one."""

    def add_items(self, cursor: Cursor, wire: int) -> bool:
        """Read an item, or packed items; return False for another wire type."""
        if wire == self.action.wire:
            self.action.read(cursor)
            return True
        if wire != BYTES:
            return False
        end = read_size(cursor) + cursor.position
        outer = cursor.stop
        cursor.stop = end
        while cursor.position < end:
            self.action.read(cursor)
        cursor.stop = outer
        return True

    def add_absent(self) -> int:
        if self.fills:
            self.action.add_zero()
        else:
            self.column.add_null()
        return 0


class MessageAction(FieldAction):
    """Reads a message with its size. Without a builder, the column is that of its only field, such as of a wrapper."""

    __slots__ = ("count", "fields", "joined", "numbers", "rows", "starts", "struct")

    def __init__(self, builder: Any, struct: StructBuilder | None, numbers: list[int], fields: list[Field]) -> None:
        FieldAction.__init__(self, builder, BYTES)
        self.struct = struct
        self.fields = fields
        self.count = len(fields)
        self.rows = {number: row for row, number in enumerate(numbers)}
        self.numbers = array("i", [self.rows.get(number, -1) for number in range(DIRECT_NUMBERS)])
        self.starts = array("q", bytes(8 * max(1, len(fields))))
        self.joined: dict[int, list[bytes]] = {}
        """The parts of singular messages that come several times."""

    def read(self, cursor: Cursor) -> int:
        end = read_size(cursor) + cursor.position
        outer = cursor.stop
        cursor.stop = end
        self.read_fields(cursor)
        cursor.stop = outer
        return 0

    def add_zero(self) -> int:
        self.read_fields(Cursor(b""))
        return 0

    def read_fields(self, cursor: Cursor) -> int:
        """Read the fields up to the end of the message."""
        for row in range(self.count):
            self.starts[row] = -1
        if self.joined:
            self.joined = {}
        while cursor.position < cursor.stop:
            tag = read_unsigned(cursor)
            number = tag >> 3
            if not 0 < number <= 0x1FFF_FFFF:
                raise SerializationError(
                    f"it has a field number {number}; it was written with another schema, or is damaged"
                )
            row = self.numbers[number] if number < DIRECT_NUMBERS else self.find_row(number)
            if row < 0 or not self.read_field(cursor, row, tag & 7):
                skip_field(cursor, tag & 7)
        self.add_singular(cursor)
        if self.struct is not None:
            self.struct.add()
        return 0

    def find_row(self, number: int) -> int:
        found = self.rows.get(number)
        return -1 if found is None else found

    def read_field(self, cursor: Cursor, row: int, wire: int) -> bool:
        """Read the items of a repeated field, or keep the position of a singular one; return False for another wire type."""
        field: Field = self.fields[row]
        if field.is_repeated:
            return field.add_items(cursor, wire)
        if wire != field.action.wire:
            return False
        start = cursor.position
        skip_field(cursor, wire)
        if field.oneof >= 0:
            self.clear_others(row, field.oneof)
        if field.is_message and self.starts[row] >= 0:
            self.join(cursor, row, start)
        self.starts[row] = start
        return True

    def clear_others(self, row: int, oneof: int) -> int:
        """Drop the values of the other fields of a oneof."""
        for other in range(self.count):
            field: Field = self.fields[other]
            if other != row and field.oneof == oneof:
                self.starts[other] = -1
                self.joined.pop(other, None)
        return 0

    def join(self, cursor: Cursor, row: int, start: int) -> int:
        """Join a message with the earlier one of the same field."""
        end = cursor.position
        parts = self.joined.get(row)
        if parts is None:
            parts = self.joined[row] = [self.copy_message(cursor, self.starts[row])]
        parts.append(self.copy_message(cursor, start))
        cursor.position = end
        return 0

    def copy_message(self, cursor: Cursor, start: int) -> bytes:
        """Return the bytes of the message with its size at `start`."""
        cursor.position = start
        size = read_size(cursor)
        return raw.slice_of(cursor.octets, cursor.position, cursor.position + size)

    def add_singular(self, cursor: Cursor) -> int:
        """Read the values at the stored positions, and end the lists."""
        end = cursor.position
        for row in range(self.count):
            field: Field = self.fields[row]
            if field.is_repeated:
                field.repeated.end(True)
            elif self.starts[row] < 0:
                field.add_absent()
            elif self.joined and row in self.joined:
                data = b"".join(self.joined[row])
                field.action.read(Cursor(encode_size(len(data)) + data))
            else:
                cursor.position = self.starts[row]
                field.action.read(cursor)
        cursor.position = end
        return 0


def encode_size(size: int) -> bytes:
    """Return a size as a varint."""
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


class RootAction(Action):
    """Reads a message that is a whole value."""

    __slots__ = ("message",)

    def __init__(self, message: MessageAction) -> None:
        self.message = message

    def read(self, cursor: Cursor) -> int:
        self.message.read_fields(cursor)
        return 0
