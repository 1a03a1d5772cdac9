"""Read Avro values into columns without a Python object for each value; compiled.

An action reads one value as its writer wrote it; `avro_columns` makes a tree of actions for each pair of a writer's and a
reader's schema.
"""

from __future__ import annotations

from array import array

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
    ListBuilder,
    LongBuilder,
    StructBuilder,
    UnionBuilder,
    cut_off_error,
)

MAX_DEPTH = 64
"""The depth of skipped recursive values."""


class NullAction(Action):
    __slots__ = ("builder",)

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        self.builder.add_null()
        return 0


class BooleanAction(Action):
    __slots__ = ("builder",)

    def __init__(self, builder: BooleanBuilder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        position = cursor.skip(1)
        if cursor.data[position] > 1:
            raise SerializationError("a boolean is neither 0 nor 1; it was written with another schema, or is damaged")
        self.builder.add(cursor.data[position] == 1)
        return 0


class IntAction(Action):
    __slots__ = ("builder",)

    def __init__(self, builder: IntBuilder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        value = cursor.number()
        if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
            raise SerializationError(
                f"{value} does not fit in an int; it was written with another schema, or is damaged"
            )
        self.builder.add(value)
        return 0


class LongAction(Action):
    __slots__ = ("builder",)

    def __init__(self, builder: LongBuilder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        self.builder.add(cursor.number())
        return 0


class FixedAction(Action):
    """Reads float, double and fixed as they are."""

    __slots__ = ("builder",)

    def __init__(self, builder: FixedBuilder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        self.builder.add(cursor.data, cursor.skip(self.builder.width))
        return 0


class PromotedAction(Action):
    """Reads int, long or float for a reader's float or double."""

    __slots__ = ("builder", "from_float", "narrow", "narrow_octets", "wide", "wide_octets")

    def __init__(self, builder: FixedBuilder, from_float: bool) -> None:
        self.builder = builder
        self.from_float = from_float
        wide, narrow = array("d", [0.0]), array("f", [0.0])
        self.wide = wide
        self.narrow = narrow
        self.wide_octets = memoryview(wide).cast("B")
        self.narrow_octets = memoryview(narrow).cast("B")

    def read(self, cursor: Cursor) -> int:
        if self.from_float:
            position = cursor.skip(4)
            for index in range(4):
                self.narrow_octets[index] = cursor.data[position + index]
            self.wide[0] = self.narrow[0]
        else:
            self.wide[0] = cursor.number()
        if self.builder.width == 8:
            self.builder.add(raw.pointer(self.wide_octets), 0)
        else:
            self.narrow[0] = self.wide[0]
            self.builder.add(raw.pointer(self.narrow_octets), 0)
        return 0


class BytesAction(Action):
    __slots__ = ("builder",)

    def __init__(self, builder: BytesBuilder) -> None:
        self.builder = builder

    def read(self, cursor: Cursor) -> int:
        size = cursor.length()
        self.builder.add(cursor.data, cursor.skip(size), size)
        return 0


class DecimalAction(Action):
    """Reads a decimal of bytes, or of a fixed type of `size`; a negative size means bytes."""

    __slots__ = ("builder", "size")

    def __init__(self, builder: FixedBuilder, size: int) -> None:
        self.builder = builder
        self.size = size

    def read(self, cursor: Cursor) -> int:
        size = self.size if self.size >= 0 else cursor.length()
        self.builder.add_big_endian(cursor.data, cursor.skip(size), size)
        return 0


class EnumAction(Action):
    """Reads a symbol's number as the reader's number; -1 marks symbols that the reader does not have."""

    __slots__ = ("builder", "count", "mapping", "symbols")

    def __init__(self, builder: IntBuilder, symbols: list[str], numbers: list[int]) -> None:
        self.builder = builder
        self.symbols = symbols
        self.mapping = array("i", [*numbers, 0])
        self.count = len(numbers)

    def read(self, cursor: Cursor) -> int:
        number = cursor.number()
        if not 0 <= number < self.count:
            raise SerializationError(f"there is no symbol {number} of {self.count}; the value is damaged")
        if self.mapping[number] < 0:
            raise SerializationError(
                f"the reader's enum has no symbol {self.symbols[number]!r} and no default; add one of them to its schema"
            )
        self.builder.add(self.mapping[number])
        return 0


class ListAction(Action):
    __slots__ = ("builder", "item")

    def __init__(self, builder: ListBuilder, item: Action) -> None:
        self.builder = builder
        self.item = item

    def read(self, cursor: Cursor) -> int:
        read_blocks(cursor, self.item)
        self.builder.end(True)
        return 0


def read_blocks(cursor: Cursor, item: Action) -> int:
    """Read the items of an array or a map: blocks with a count, a negative one with a size in bytes."""
    while True:
        count = cursor.number()
        if count == 0:
            return 0
        if count < 0:
            count = -count
            cursor.length()
        while count > 0:
            before = cursor.position
            item.read(cursor)
            cursor.count_item(before)
            count -= 1
        if count < 0:  # the compiled form cannot negate the lowest number
            raise cut_off_error()


class RecordAction(Action):
    """Reads the fields in the writer's order, then adds the defaults of the reader's other fields."""

    __slots__ = ("actions", "builder", "count")

    def __init__(self, builder: StructBuilder, actions: list[Action]) -> None:
        self.builder = builder
        self.actions = actions
        self.count = len(actions)

    def read(self, cursor: Cursor) -> int:
        for index in range(self.count):
            action: Action = self.actions[index]
            action.read(cursor)
        self.builder.add()
        return 0


class SequenceAction(Action):
    """Reads several values: the key and the value of a map, or the fields of a skipped record."""

    __slots__ = ("actions",)

    def __init__(self, actions: list[Action]) -> None:
        self.actions = actions

    def read(self, cursor: Cursor) -> int:
        cursor.depth += 1
        if cursor.depth > MAX_DEPTH:
            raise SerializationError(f"it is nested more than {MAX_DEPTH} times")
        for item in self.actions:
            action: Action = item
            action.read(cursor)
        cursor.depth -= 1
        return 0


class BranchAction(Action):
    """Reads a union: the number of a branch and its value."""

    __slots__ = ("branches", "count")

    def __init__(self, branches: list[Action]) -> None:
        self.branches = branches
        self.count = len(branches)

    def read(self, cursor: Cursor) -> int:
        number = cursor.number()
        if not 0 <= number < self.count:
            raise SerializationError(
                f"a union has {self.count} types, and not number {number}; it was written with another schema, or is damaged"
            )
        action: Action = self.branches[number]
        action.read(cursor)
        return 0


class TaggedAction(Action):
    """Adds a value to a column of several types."""

    __slots__ = ("builder", "kind", "value")

    def __init__(self, builder: UnionBuilder, kind: int, value: Action) -> None:
        self.builder = builder
        self.kind = kind
        self.value = value

    def read(self, cursor: Cursor) -> int:
        self.value.read(cursor)
        self.builder.add(self.kind)
        return 0


class DefaultAction(Action):
    """Adds a default value, which is given as Avro."""

    __slots__ = ("cursor", "value")

    def __init__(self, data: bytes, value: Action) -> None:
        self.cursor = Cursor(data)
        self.value = value

    def read(self, cursor: Cursor) -> int:
        self.cursor.position = 0
        self.cursor.empty_items = 0
        self.value.read(self.cursor)
        return 0


class SkipNumber(Action):
    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        cursor.number()
        return 0


class SkipFixed(Action):
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, cursor: Cursor) -> int:
        cursor.skip(self.size)
        return 0


class SkipBytes(Action):
    __slots__ = ()

    def read(self, cursor: Cursor) -> int:
        cursor.skip(cursor.length())
        return 0


class SkipBlocks(Action):
    __slots__ = ("item",)

    def __init__(self, item: Action) -> None:
        self.item = item

    def read(self, cursor: Cursor) -> int:
        read_blocks(cursor, self.item)
        return 0
