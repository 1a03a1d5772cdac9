"""Columns in Arrow's layout that grow value by value, and the loop that reads registered values into them; compiled.

A `Builder` is a column while it grows. An `Action` reads one value, as its writer wrote it, from a `Cursor` and adds it to
a builder; each format has its own (`avro_reader`, `json_reader`, `protobuf_reader`). The data is untrusted: each length is
compared with the available bytes before it is used.
"""

from __future__ import annotations

from array import array
from typing import Any

from ottla.errors import SerializationError
from ottla.records import raw
from ottla.records.binary_column import BinaryColumn

PREFIX_BYTES = 5
GUID_BYTES = 17
MAX_BYTES = 0x7FFF_FFFF
MAX_EMPTY_ITEMS = 10_000
"""The number of array items without bytes in one value; more would cost memory that no data pays for."""
MAX_INDEXES = 100
"""The most message indexes of a Protobuf value."""


class Cursor:
    """A position in the bytes of one value."""

    __slots__ = ("data", "depth", "empty_items", "octets", "position", "start", "stop")

    def __init__(self, octets: Any) -> None:
        self.octets = octets
        self.data = raw.pointer(octets)
        self.start = 0
        self.position = 0
        self.stop = len(octets)
        self.empty_items = 0
        self.depth = 0

    def number(self) -> int:
        """Read a zigzag varint."""
        value, position = raw.read_varint(self.data, self.position, self.stop)
        if position > self.stop:
            raise cut_off_error()
        self.position = position
        return value

    def length(self) -> int:
        """Read a length, and check that so many bytes follow."""
        size = self.number()
        if size < 0 or size > self.stop - self.position:
            raise cut_off_error()
        return size

    def skip(self, size: int) -> int:
        """Move behind the next `size` bytes; return the position before them."""
        position = self.position
        if size > self.stop - position:
            raise cut_off_error()
        self.position = position + size
        return position

    def count_item(self, before: int) -> int:
        """Count an item that began at `before`, to limit those without bytes."""
        if self.position == before:
            self.empty_items += 1
            if self.empty_items > MAX_EMPTY_ITEMS:
                raise SerializationError(f"it has more than {MAX_EMPTY_ITEMS} array items without bytes")
        return 0


def cut_off_error() -> SerializationError:
    return SerializationError("its bytes end within a field; it was written with another schema, or is damaged")


class Builder:
    """A column of `count` values, with a bit for each that is not null."""

    __slots__ = ("bit_target", "bits", "count", "null_count", "room")

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, room: int) -> int:
        """Begin an empty column with memory for `room` values."""
        self.room = max(room, 8)
        self.bits = bytearray((self.room + 7) // 8)
        self.bit_target = raw.octets(self.bits)
        self.count = 0
        self.null_count = 0
        return 0

    def grow(self) -> int:
        """Double the memory."""
        self.room *= 2
        self.bits += bytes((self.room + 7) // 8 - len(self.bits))
        self.bit_target = raw.octets(self.bits)
        return 0

    def mark(self, valid: bool) -> int:
        """Count the value that was written at `count`."""
        if valid:
            self.bit_target[self.count >> 3] |= 1 << (self.count & 7)
        else:
            self.null_count += 1
        self.count += 1
        return 0

    def add_null(self) -> int:
        if self.count >= self.room:
            self.grow()
        self.mark(False)
        return 0

    def rollback(self, count: int) -> int:
        """Remove the values after the first `count`."""
        for row in range(count, self.count):
            if self.bit_target[row >> 3] >> (row & 7) & 1:
                self.bit_target[row >> 3] ^= 1 << (row & 7)
            else:
                self.null_count -= 1
        self.count = min(self.count, count)
        return 0

    def validity(self) -> bytearray | None:
        """Return the bitmap; None without nulls."""
        return self.bits if self.null_count else None


class IntBuilder(Builder):
    """Numbers of 32 bits."""

    __slots__ = ("data", "numbers")

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.data = raw.allocate(4 * self.room)
        self.numbers = memoryview(self.data).cast("i")
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.data = self.data + bytes(4 * self.room - len(self.data))
        self.numbers = memoryview(self.data).cast("i")
        return 0

    def add(self, value: int) -> int:
        if self.count >= self.room:
            self.grow()
        self.numbers[self.count] = value
        self.mark(True)
        return 0

    def add_null(self) -> int:
        if self.count >= self.room:
            self.grow()
        self.numbers[self.count] = 0
        self.mark(False)
        return 0


class LongBuilder(Builder):
    """Numbers of 64 bits."""

    __slots__ = ("data", "numbers")

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.data = raw.allocate(8 * self.room)
        self.numbers = memoryview(self.data).cast("q")
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.data = self.data + bytes(8 * self.room - len(self.data))
        self.numbers = memoryview(self.data).cast("q")
        return 0

    def add(self, value: int) -> int:
        if self.count >= self.room:
            self.grow()
        self.numbers[self.count] = value
        self.mark(True)
        return 0

    def add_null(self) -> int:
        if self.count >= self.room:
            self.grow()
        self.numbers[self.count] = 0
        self.mark(False)
        return 0


class BooleanBuilder(Builder):
    """Bits."""

    __slots__ = ("data", "target")

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.data = bytearray((self.room + 7) // 8)
        self.target = raw.octets(self.data)
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.data = self.data + bytes((self.room + 7) // 8 - len(self.data))
        self.target = raw.octets(self.data)
        return 0

    def add(self, value: bool) -> int:
        if self.count >= self.room:
            self.grow()
        if value:
            self.target[self.count >> 3] |= 1 << (self.count & 7)
        self.mark(True)
        return 0

    def rollback(self, count: int) -> int:
        for row in range(count, self.count):
            if self.target[row >> 3] >> (row & 7) & 1:
                self.target[row >> 3] ^= 1 << (row & 7)
        Builder.rollback(self, count)
        return 0


class FixedBuilder(Builder):
    """Values of `width` bytes: floats, decimals and fixed types."""

    __slots__ = ("data", "target", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.reset(0)

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.data = bytearray(self.width * self.room)
        self.target = raw.octets(self.data)
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.data = self.data + bytes(self.width * self.room - len(self.data))
        self.target = raw.octets(self.data)
        return 0

    def add(self, source: Any, start: int) -> int:
        """Add the bytes at `start`."""
        if self.count >= self.room:
            self.grow()
        raw.copy(self.target, self.width * self.count, source, start, self.width)
        self.mark(True)
        return 0

    def add_big_endian(self, source: Any, start: int, size: int) -> int:
        """Add a signed number of `size` bytes, most significant byte first, as Arrow stores decimals."""
        if size > self.width:
            raise SerializationError(f"a decimal of {size} bytes has more digits than its schema allows")
        if self.count >= self.room:
            self.grow()
        sign = 0xFF if size > 0 and source[start] >= 0x80 else 0
        end = self.width * self.count
        for index in range(size):
            self.target[end + index] = source[start + size - 1 - index]
        for index in range(size, self.width):
            self.target[end + index] = sign
        self.mark(True)
        return 0


class BytesBuilder(Builder):
    """Strings or bytes."""

    __slots__ = ("bounds", "data", "data_room", "offsets", "size", "target", "text")

    def __init__(self, text: bool) -> None:
        self.text = text
        self.reset(0)

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.offsets = raw.allocate(4 * (self.room + 1))
        self.bounds = memoryview(self.offsets).cast("i")
        self.bounds[0] = 0
        self.data_room = 16 * self.room
        self.data = raw.allocate(self.data_room)
        self.target = raw.octets(self.data)
        self.size = 0
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.offsets = self.offsets + bytes(4 * (self.room + 1) - len(self.offsets))
        self.bounds = memoryview(self.offsets).cast("i")
        return 0

    def add(self, source: Any, start: int, size: int) -> int:
        if self.count >= self.room:
            self.grow()
        if size > self.data_room - self.size:
            if size > MAX_BYTES - self.size:
                raise SerializationError("a column of strings would exceed 2 GiB; poll fewer bytes at once (max_bytes)")
            self.data_room = min(2 * self.data_room + size, MAX_BYTES)
            self.data = self.data + bytes(self.data_room - len(self.data))
            self.target = raw.octets(self.data)
        raw.copy(self.target, self.size, source, start, size)
        if self.text:
            high = 0
            for index in range(self.size, self.size + size):
                high |= self.target[index]
            if high >= 0x80:
                check_text(bytes(memoryview(self.data)[self.size : self.size + size]))
        self.size += size
        self.mark(True)
        self.bounds[self.count] = self.size
        return 0

    def add_null(self) -> int:
        if self.count >= self.room:
            self.grow()
        self.mark(False)
        self.bounds[self.count] = self.size
        return 0

    def rollback(self, count: int) -> int:
        Builder.rollback(self, count)
        self.size = self.bounds[self.count]
        return 0


def check_text(data: bytes) -> int:
    """Raise SerializationError if the bytes are not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise SerializationError(
            f"a string is not UTF-8 at byte {error.start}; it was written with another schema, or is damaged"
        ) from None
    return 0


class ListBuilder(Builder):
    """Lists: their bounds in the column of all items. Maps are lists of entries."""

    __slots__ = ("bounds", "item", "offsets")

    def __init__(self, item: Builder) -> None:
        self.item = item
        self.reset(0)

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.offsets = raw.allocate(4 * (self.room + 1))
        self.bounds = memoryview(self.offsets).cast("i")
        self.bounds[0] = 0
        self.item.reset(0)
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.offsets = self.offsets + bytes(4 * (self.room + 1) - len(self.offsets))
        self.bounds = memoryview(self.offsets).cast("i")
        return 0

    def end(self, valid: bool) -> int:
        """Add the list of the items that were added since the last one."""
        if self.item.count > MAX_BYTES:
            raise SerializationError("a column of lists would have more than 2^31 items; poll fewer bytes at once")
        if self.count >= self.room:
            self.grow()
        self.mark(valid)
        self.bounds[self.count] = self.item.count
        return 0

    def add_null(self) -> int:
        self.end(False)
        return 0

    def rollback(self, count: int) -> int:
        Builder.rollback(self, count)
        self.item.rollback(self.bounds[self.count])
        return 0


class StructBuilder(Builder):
    """Structs: a column for each field."""

    __slots__ = ("fields",)

    def __init__(self, fields: list[Builder]) -> None:
        self.fields = fields
        self.reset(0)

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        for field in self.fields:
            one: Builder = field
            one.reset(room)
        return 0

    def add(self) -> int:
        """Add a struct after its fields."""
        if self.count >= self.room:
            self.grow()
        self.mark(True)
        return 0

    def add_null(self) -> int:
        for field in self.fields:
            one: Builder = field
            one.add_null()
        if self.count >= self.room:
            self.grow()
        self.mark(False)
        return 0

    def rollback(self, count: int) -> int:
        Builder.rollback(self, count)
        for field in self.fields:
            one: Builder = field
            one.rollback(self.count)
        return 0


class UnionBuilder(Builder):
    """Values of several types: the number of a type and a row in the column of that type."""

    __slots__ = ("branches", "counts", "data", "kinds", "offsets", "rows")

    def __init__(self, branches: list[Builder]) -> None:
        self.branches = branches
        self.reset(0)

    def reset(self, room: int) -> int:
        Builder.reset(self, room)
        self.data = raw.allocate(self.room)
        self.kinds = raw.octets(self.data)
        self.offsets = raw.allocate(4 * self.room)
        self.rows = memoryview(self.offsets).cast("i")
        self.counts = array("i", bytes(4 * len(self.branches)))
        for branch in self.branches:
            one: Builder = branch
            one.reset(0)
        return 0

    def grow(self) -> int:
        Builder.grow(self)
        self.data = self.data + bytes(self.room - len(self.data))
        self.kinds = raw.octets(self.data)
        self.offsets = self.offsets + bytes(4 * self.room - len(self.offsets))
        self.rows = memoryview(self.offsets).cast("i")
        return 0

    def add(self, kind: int) -> int:
        """Add a value of the type `kind`, which was added to its column before."""
        if self.count >= self.room:
            self.grow()
        self.kinds[self.count] = kind
        self.rows[self.count] = self.counts[kind]
        self.counts[kind] += 1
        self.mark(True)
        return 0

    def add_null(self) -> int:
        one: Builder = self.branches[0]
        one.add_null()
        self.add(0)
        return 0

    def rollback(self, count: int) -> int:
        for row in range(count, self.count):
            self.counts[self.kinds[row]] -= 1
        Builder.rollback(self, count)
        for kind, branch in enumerate(self.branches):
            one: Builder = branch
            one.rollback(self.counts[kind])
        return 0


class Action:
    """Reads one value, and adds it to a builder."""

    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        """Read the value. Raises SerializationError if it is malformed."""
        return 0


class ErrorAction(Action):
    """Raises an error: the schemas do not match here, which only matters if there is a value."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def read(self, cursor: Cursor) -> int:
        raise SerializationError(self.message)


class IdReader:
    """Finds the schema id of each value: in its header `name` if it has one, else in front of it.

    A key is the id as bytes: 0 and the id, or 1 and the guid; then the message indexes of Protobuf.
    """

    __slots__ = ("column", "data", "has_indexes", "header", "header_data", "headers", "in_header", "name", "position", "start", "stop")  # fmt: skip

    def __init__(self, column: BinaryColumn, headers: Any, name: bytes, has_indexes: bool) -> None:
        self.column = column
        self.data = raw.pointer(column.octets)
        self.headers = headers
        self.header_data = raw.pointer(column.octets if headers is None else headers.octets)
        self.name = name
        self.header = raw.pointer(name)
        self.has_indexes = has_indexes
        self.in_header = False
        self.start = 0
        self.stop = 0
        self.position = 0

    def find(self, row: int) -> bool:
        """Find the key from `start` to `stop` of its source, and the `position` of the payload; return False without a key."""
        self.in_header = self.headers is not None and self.find_header(row)
        if self.in_header:
            self.position = self.column.bounds[row]
            return self.key_size(self.header_data, self.start, self.stop) == self.stop - self.start
        self.start = self.column.bounds[row]
        size = self.key_size(self.data, self.start, self.column.bounds[row + 1])
        self.stop = self.start + size
        self.position = self.stop
        return size > 0

    def key_size(self, source: Any, start: int, end: int) -> int:
        """Return the size of the key at `start`, 0 if there is none."""
        position = start
        if end - position >= PREFIX_BYTES and source[position] == 0:
            position += PREFIX_BYTES
        elif end - position >= GUID_BYTES and source[position] == 1:
            position += GUID_BYTES
        else:
            return 0
        if self.has_indexes:
            count, position = raw.read_varint(source, position, end)
            if not 0 <= count <= MAX_INDEXES:
                return 0
            while count > 0:
                _, position = raw.read_varint(source, position, end)
                count -= 1
        return position - start if position <= end else 0

    def find_header(self, row: int) -> bool:
        """Find the value of the header of a row, from `start` to `stop`; return False if there is none."""
        headers = self.headers
        position = headers.bounds[row]
        end = headers.bounds[row + 1]
        count = 0
        if position < end:
            count, position = raw.read_varint(self.header_data, position, end)
        while count > 0:
            count -= 1
            size, position = raw.read_varint(self.header_data, position, end)
            if size < 0 or size > end - position:
                return False
            is_wanted = size == len(self.name)
            for index in range(size):
                if not is_wanted or self.header_data[position + index] != self.header[index]:
                    is_wanted = False
                    break
            position += size
            size, position = raw.read_varint(self.header_data, position, end)
            if size > end - position:
                return False
            if is_wanted and size >= 0:
                self.start = position
                self.stop = position + size
                return True
            if size > 0:
                position += size
        return False

    def key(self) -> bytes:
        """Return a copy of the key that was found."""
        if self.in_header:
            return raw.slice_of(self.headers.octets, self.start, self.stop)
        return raw.slice_of(self.column.octets, self.start, self.stop)

    def is_equal(self, start: int, stop: int, in_header: bool) -> bool:
        """Return True if the key that was found is the same as another one that was found before."""
        if self.stop - self.start != stop - start or self.in_header != in_header:
            return False
        source = self.header_data if in_header else self.data
        index = 0
        while start + index < stop and source[self.start + index] == source[start + index]:
            index += 1
        return start + index == stop


def is_null(column: BinaryColumn, row: int) -> bool:
    return column.null_count > 0 and not column.bits[row >> 3] >> (row & 7) & 1


def find_keys(ids: IdReader) -> set[bytes]:
    """Return the keys of all values that have one."""
    found: set[bytes] = set()
    start = stop = -1
    in_header = False
    for row in range(ids.column.count):
        if is_null(ids.column, row) or not ids.find(row):
            continue
        if start < 0 or not ids.is_equal(start, stop, in_header):
            start, stop, in_header = ids.start, ids.stop, ids.in_header
            found.add(ids.key())
    return found


def read_column(ids: IdReader, builder: Builder, actions: dict[bytes, Action], errors: dict[int, str]) -> int:
    """Read all values with the actions of their keys. A row that cannot be read is null and has an error."""
    column = ids.column
    cursor = Cursor(column.octets)
    builder.reset(column.count)
    action: Action | None = None
    start = stop = -1
    in_header = False
    for row in range(column.count):
        if is_null(column, row):
            builder.add_null()
            continue
        try:
            if not ids.find(row):
                raise SerializationError(
                    "there is no schema id in front of it: a registered value begins with 0x00 and four bytes of id"
                )
            if start < 0 or not ids.is_equal(start, stop, in_header):
                start, stop, in_header = ids.start, ids.stop, ids.in_header
                action = actions.get(ids.key())
            if action is None:
                raise SerializationError(f"schema {describe_key(ids.key())} is not in the registry")
            cursor.start = ids.position
            cursor.position = ids.position
            cursor.stop = column.bounds[row + 1]
            cursor.empty_items = 0
            cursor.depth = 0
            action.read(cursor)
            if cursor.position != cursor.stop:
                raise SerializationError(
                    f"{cursor.stop - cursor.position} of {cursor.stop - column.bounds[row]} bytes are left over; it was written "
                    "with another schema"
                )
        except SerializationError as error:
            builder.rollback(row)
            builder.add_null()
            errors[row] = str(error)
    return 0


def describe_key(key: bytes) -> str:
    """Return the id or the guid of a key."""
    if key[0] == 0:
        return str(int.from_bytes(key[1:PREFIX_BYTES], "big"))
    text = key[1:GUID_BYTES].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
