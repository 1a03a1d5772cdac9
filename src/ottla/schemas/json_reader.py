"""Read JSON values into columns without a Python object for each value; compiled.

An action reads one JSON value of any type, and rejects those that its column cannot hold. null and absent are null. Strings
with escapes and numbers of more than 18 digits are converted by Python. The grammar is that of RFC 8259.
"""

from __future__ import annotations

import json
from array import array
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
    ListBuilder,
    LongBuilder,
    StructBuilder,
)

MAX_DEPTH = 128
"""The depth of values that are kept as text, or skipped."""
MAX_DIGITS = 18
MAX_LONG_DIGITS = 19
"""The digits of the largest number of 64 bits."""
MAX_EXACT = 1 << 53
MAX_POWER = 22
POWERS = array("d", [10.0**power for power in range(MAX_POWER + 1)])
"""The powers of ten that a double holds exactly."""
SPACE, QUOTE, COMMA, COLON, BACKSLASH, MINUS, PLUS, DOT, ZERO = b' ",:\\-+.0'
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = b"[]{}"
LOWER_A, LOWER_B, LOWER_E, LOWER_F, LOWER_N, LOWER_R, LOWER_T, LOWER_U, SLASH = b"abefnrtu/"
NAMES = {QUOTE: "a string", OPEN_LIST: "an array", OPEN_OBJECT: "an object", LOWER_T: "a boolean", LOWER_F: "a boolean"}


def peek(cursor: Cursor) -> int:
    """Skip whitespace; return the next byte. Raises SerializationError at the end."""
    while cursor.position < cursor.stop:
        octet: int = cursor.data[cursor.position]
        if octet > SPACE:
            return octet
        if octet != SPACE and octet != 9 and octet != 10 and octet != 13:
            raise malformed_error(cursor)
        cursor.position += 1
    raise malformed_error(cursor)


def malformed_error(cursor: Cursor) -> SerializationError:
    if cursor.position >= cursor.stop:
        return SerializationError("it is not JSON: it ends within a value")
    octet = cursor.data[cursor.position]
    return SerializationError(f"it is not JSON: unexpected byte 0x{octet:02x} at {cursor.position - cursor.start}")


def mismatch_error(cursor: Cursor, path: str, wanted: str) -> SerializationError:
    octet = cursor.data[cursor.position]
    if octet not in NAMES and octet != MINUS and not 0 <= octet - ZERO <= 9:
        return malformed_error(cursor)
    where = f"field {path}" if path else "the value"
    found = NAMES.get(octet, "a number")
    return SerializationError(f"{where} is {found}, and the schema has {wanted}; name another version to read with")


def skip_literal(cursor: Cursor, word: bytes) -> int:
    """Move behind true, false or null."""
    for octet in word:
        if cursor.position >= cursor.stop or cursor.data[cursor.position] != octet:
            raise malformed_error(cursor)
        cursor.position += 1
    return 0


def skip_string(cursor: Cursor) -> bool:
    """Move behind a string that begins at the cursor; return True if it has escapes."""
    has_escapes = False
    position = cursor.position + 1
    while position < cursor.stop:
        octet = cursor.data[position]
        if octet == QUOTE:
            cursor.position = position + 1
            return has_escapes
        if octet == BACKSLASH:
            has_escapes = True
            position = skip_escape(cursor, position)
        elif octet < SPACE:
            break
        position += 1
    cursor.position = min(position, cursor.stop)
    raise malformed_error(cursor)


def skip_escape(cursor: Cursor, position: int) -> int:
    """Return the position of the last byte of an escape. Its backslash is at `position`."""
    position += 1
    octet = cursor.data[position] if position < cursor.stop else 0
    if octet == LOWER_U:
        for _ in range(4):
            position += 1
            octet = cursor.data[position] if position < cursor.stop else 0
            if not (0 <= octet - ZERO <= 9 or 0 <= (octet | 0x20) - LOWER_A <= 5):
                octet = 0
                break
    elif octet not in (QUOTE, BACKSLASH, SLASH, LOWER_B, LOWER_F, LOWER_N, LOWER_R, LOWER_T):
        octet = 0
    if octet == 0:
        cursor.position = min(position, cursor.stop)
        raise malformed_error(cursor)
    return position


def unescape(cursor: Cursor, start: int) -> bytes:
    """Return the UTF-8 text of a string with escapes, which ends at the cursor."""
    try:
        text: str = json.loads(raw.slice_of(cursor.octets, start, cursor.position))
        return text.encode()
    except (ValueError, UnicodeError):
        raise SerializationError("it is not JSON: a string has an invalid escape, or is not UTF-8") from None


def skip_digits(cursor: Cursor) -> int:
    """Move behind digits, of which there must be one; return their number."""
    start = cursor.position
    while cursor.position < cursor.stop and 0 <= cursor.data[cursor.position] - ZERO <= 9:
        cursor.position += 1
    if cursor.position == start:
        raise malformed_error(cursor)
    return cursor.position - start


def skip_integer(cursor: Cursor) -> int:
    """Move behind the digits in front of a fraction; return the position of the first. Only 0 may begin with 0."""
    first = cursor.position
    if skip_digits(cursor) > 1 and cursor.data[first] == ZERO:
        cursor.position = first
        raise malformed_error(cursor)
    return first


def begins_fraction(cursor: Cursor) -> bool:
    return cursor.position < cursor.stop and cursor.data[cursor.position] == DOT


def begins_exponent(cursor: Cursor) -> bool:
    return cursor.position < cursor.stop and cursor.data[cursor.position] | 0x20 == LOWER_E


def skip_exponent_sign(cursor: Cursor) -> bool:
    """Move behind the letter and the sign of an exponent; return True if it is negative."""
    cursor.position += 1
    octet = cursor.data[cursor.position] if cursor.position < cursor.stop else 0
    if octet in (PLUS, MINUS):
        cursor.position += 1
    is_negative: bool = octet == MINUS
    return is_negative


def skip_number(cursor: Cursor) -> int:
    """Move behind a number."""
    if cursor.data[cursor.position] == MINUS:
        cursor.position += 1
    skip_integer(cursor)
    if begins_fraction(cursor):
        cursor.position += 1
        skip_digits(cursor)
    if begins_exponent(cursor):
        skip_exponent_sign(cursor)
        skip_digits(cursor)
    return 0


class Number:
    """A number as it was read: a whole one, or a mantissa and a power of ten."""

    __slots__ = ("digits", "is_negative", "is_whole", "mantissa", "power", "start")

    def __init__(self) -> None:
        self.start = 0
        self.mantissa = 0
        self.power = 0
        self.digits = 0
        self.is_negative = False
        self.is_whole = True

    def scan(self, cursor: Cursor) -> int:
        """Read a number at the cursor."""
        self.start = cursor.position
        self.mantissa = 0
        self.power = 0
        self.digits = 0
        self.is_whole = True
        self.is_negative = cursor.data[cursor.position] == MINUS
        if self.is_negative:
            cursor.position += 1
        first = skip_integer(cursor)
        self.add_digits(cursor, first)
        if begins_fraction(cursor):
            self.is_whole = False
            cursor.position += 1
            first = cursor.position
            self.power = -skip_digits(cursor)
            self.add_digits(cursor, first)
        if begins_exponent(cursor):
            self.is_whole = False
            self.scan_exponent(cursor)
        return 0

    def add_digits(self, cursor: Cursor, first: int) -> int:
        """Add digits to the mantissa; more than `MAX_DIGITS` are only counted."""
        for position in range(first, cursor.position):
            if self.digits < MAX_DIGITS:
                self.mantissa = self.mantissa * 10 + (cursor.data[position] - ZERO)
            if self.digits or cursor.data[position] != ZERO:
                self.digits += 1
        return 0

    def scan_exponent(self, cursor: Cursor) -> int:
        is_negative = skip_exponent_sign(cursor)
        first = cursor.position
        skip_digits(cursor)
        exponent = 0
        for position in range(first, cursor.position):
            if exponent < 100_000:
                exponent = exponent * 10 + (cursor.data[position] - ZERO)
        self.power += -exponent if is_negative else exponent
        return 0

    def as_double(self, cursor: Cursor) -> float:
        """Return the nearest double: exact operands have a correctly rounded result, all others are read by Python."""
        value = 0.0
        if self.digits <= MAX_DIGITS and self.mantissa <= MAX_EXACT and -MAX_POWER <= self.power <= MAX_POWER:
            value = self.mantissa
            if self.power < 0:
                value /= POWERS[-self.power]
            else:
                value *= POWERS[self.power]
            return -value if self.is_negative else value
        return float(raw.slice_of(cursor.octets, self.start, cursor.position))

    def as_long(self, cursor: Cursor, path: str) -> int:
        """Return a whole number of 64 bits. Raises SerializationError if it is not one."""
        if self.is_whole and self.digits <= MAX_DIGITS:
            return -self.mantissa if self.is_negative else self.mantissa
        text = raw.slice_of(cursor.octets, self.start, cursor.position)
        # A number with more digits is out of range. Python refuses to convert thousands of digits to an int.
        number: Any = int(text) if self.is_whole and self.digits <= MAX_LONG_DIGITS else float(text)
        if not -0x8000_0000_0000_0000 <= number < 0x8000_0000_0000_0000 or number != int(number):
            where = f"field {path}" if path else "the value"
            raise SerializationError(
                f"{where} is {text.decode()[:80]}, and the schema has an integer of 64 bits; read the values as bytes"
            )
        return int(number)


def begin_items(cursor: Cursor, close: int) -> bool:
    """Move into the array or object at the cursor; return False if it is empty, and move behind it."""
    cursor.position += 1
    if peek(cursor) != close:
        return True
    cursor.position += 1
    return False


def next_item(cursor: Cursor, close: int) -> bool:
    """Move behind a comma and return True, or behind the end of the array or object and return False."""
    octet = peek(cursor)
    if octet != COMMA and octet != close:
        raise malformed_error(cursor)
    cursor.position += 1
    return octet == COMMA


def check_name(cursor: Cursor) -> int:
    """Move to the name of a property."""
    if peek(cursor) != QUOTE:
        raise malformed_error(cursor)
    return 0


def skip_colon(cursor: Cursor) -> int:
    """Move behind the colon after the name of a property."""
    if peek(cursor) != COLON:
        raise malformed_error(cursor)
    cursor.position += 1
    return 0


def skip_value(cursor: Cursor) -> int:
    """Move behind a value of any type."""
    octet = peek(cursor)
    if octet == QUOTE:
        skip_string(cursor)
    elif octet in (OPEN_LIST, OPEN_OBJECT):
        cursor.depth += 1
        if cursor.depth > MAX_DEPTH:
            raise SerializationError(f"it is nested more than {MAX_DEPTH} times")
        skip_items(cursor, octet == OPEN_OBJECT)
        cursor.depth -= 1
    elif octet == LOWER_T:
        skip_literal(cursor, b"true")
    elif octet == LOWER_F:
        skip_literal(cursor, b"false")
    elif octet == LOWER_N:
        skip_literal(cursor, b"null")
    else:
        skip_number(cursor)
    return 0


def skip_items(cursor: Cursor, is_object: bool) -> int:
    """Move behind an array or an object, which begins at the cursor."""
    close = CLOSE_OBJECT if is_object else CLOSE_LIST
    has_more = begin_items(cursor, close)
    while has_more:
        if is_object:
            check_name(cursor)
            skip_string(cursor)
            skip_colon(cursor)
        skip_value(cursor)
        has_more = next_item(cursor, close)
    return 0


class ValueAction(Action):
    """Reads a value for a field; null for all types."""

    __slots__ = ("builder", "path")

    def __init__(self, builder: Any, path: str) -> None:
        self.builder = builder
        self.path = path

    def read(self, cursor: Cursor) -> int:
        octet = peek(cursor)
        if octet == LOWER_N:
            skip_literal(cursor, b"null")
            self.builder.add_null()
            return 0
        return self.read_value(cursor, octet)

    def read_value(self, cursor: Cursor, octet: int) -> int:
        """Read a value that is not null and begins with `octet`."""
        raise mismatch_error(cursor, self.path, "null")


class DocumentAction(Action):
    """Reads a whole value, with whitespace behind it."""

    __slots__ = ("value",)

    def __init__(self, value: Action) -> None:
        self.value = value

    def read(self, cursor: Cursor) -> int:
        self.value.read(cursor)
        while cursor.position < cursor.stop:
            octet = cursor.data[cursor.position]
            if octet != SPACE and octet != 9 and octet != 10 and octet != 13:
                raise malformed_error(cursor)
            cursor.position += 1
        return 0


class BooleanAction(ValueAction):
    __slots__ = ()

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: BooleanBuilder = self.builder
        if octet == LOWER_T:
            skip_literal(cursor, b"true")
            builder.add(True)
        elif octet == LOWER_F:
            skip_literal(cursor, b"false")
            builder.add(False)
        else:
            raise mismatch_error(cursor, self.path, "boolean")
        return 0


class LongAction(ValueAction):
    __slots__ = ("number",)

    def __init__(self, builder: Builder, path: str) -> None:
        ValueAction.__init__(self, builder, path)
        self.number = Number()

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: LongBuilder = self.builder
        if octet != MINUS and not 0 <= octet - ZERO <= 9:
            raise mismatch_error(cursor, self.path, "integer")
        self.number.scan(cursor)
        builder.add(self.number.as_long(cursor, self.path))
        return 0


class DoubleAction(ValueAction):
    __slots__ = ("number", "octets", "value")

    def __init__(self, builder: Builder, path: str) -> None:
        ValueAction.__init__(self, builder, path)
        self.number = Number()
        value = array("d", [0.0])
        self.value = value
        self.octets = memoryview(value).cast("B")

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: FixedBuilder = self.builder
        if octet != MINUS and not 0 <= octet - ZERO <= 9:
            raise mismatch_error(cursor, self.path, "number")
        self.number.scan(cursor)
        self.value[0] = self.number.as_double(cursor)
        builder.add(raw.pointer(self.octets), 0)
        return 0


class StringAction(ValueAction):
    __slots__ = ()

    def read_value(self, cursor: Cursor, octet: int) -> int:
        if octet != QUOTE:
            raise mismatch_error(cursor, self.path, "string")
        add_string(cursor, self.builder)
        return 0


def add_string(cursor: Cursor, builder: BytesBuilder) -> int:
    """Read a string that begins at the cursor."""
    start = cursor.position
    if skip_string(cursor):
        text = unescape(cursor, start)
        builder.add(raw.pointer(text), 0, len(text))
    else:
        builder.add(cursor.data, start + 1, cursor.position - start - 2)
    return 0


class TextAction(ValueAction):
    """Keeps a value of any type as JSON text."""

    __slots__ = ()

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: BytesBuilder = self.builder
        start = cursor.position
        skip_value(cursor)
        builder.add(cursor.data, start, cursor.position - start)
        return 0


class ListAction(ValueAction):
    __slots__ = ("item",)

    def __init__(self, builder: Builder, path: str, item: Action) -> None:
        ValueAction.__init__(self, builder, path)
        self.item = item

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: ListBuilder = self.builder
        if octet != OPEN_LIST:
            raise mismatch_error(cursor, self.path, "array")
        has_more = begin_items(cursor, CLOSE_LIST)
        while has_more:
            self.item.read(cursor)
            has_more = next_item(cursor, CLOSE_LIST)
        builder.end(True)
        return 0


class MapAction(ValueAction):
    """Reads an object whose properties have one type. `entry` is the column of entries, with the columns of keys and values."""

    __slots__ = ("entry", "key", "value")

    def __init__(self, builder: Builder, path: str, entry: StructBuilder, key: BytesBuilder, value: Action) -> None:
        ValueAction.__init__(self, builder, path)
        self.entry = entry
        self.key = key
        self.value = value

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: ListBuilder = self.builder
        if octet != OPEN_OBJECT:
            raise mismatch_error(cursor, self.path, "object")
        has_more = begin_items(cursor, CLOSE_OBJECT)
        while has_more:
            check_name(cursor)
            add_string(cursor, self.key)
            skip_colon(cursor)
            self.value.read(cursor)
            self.entry.add()
            has_more = next_item(cursor, CLOSE_OBJECT)
        builder.end(True)
        return 0


class ObjectAction(ValueAction):
    """Reads the properties in any order, and skips those without a column. Of two with the same name the last counts."""

    __slots__ = ("actions", "bounds", "builders", "count", "name_data", "names", "numbers", "round", "rounds")

    def __init__(
        self, builder: Builder, path: str, names: list[bytes], actions: list[Action], builders: list[Builder]
    ) -> None:
        ValueAction.__init__(self, builder, path)
        self.names = b"".join(names)
        self.name_data = raw.pointer(self.names)
        self.bounds = array("i", [sum(map(len, names[:number])) for number in range(len(names) + 1)])
        self.numbers = {name: number for number, name in enumerate(names)}
        self.actions = actions
        self.builders = builders
        self.count = len(names)
        self.round = 0
        self.rounds = array("q", bytes(8 * max(1, len(names))))

    def read_value(self, cursor: Cursor, octet: int) -> int:
        builder: StructBuilder = self.builder
        if octet != OPEN_OBJECT:
            raise mismatch_error(cursor, self.path, "object")
        self.round += 1
        expected = 0
        has_more = begin_items(cursor, CLOSE_OBJECT)
        while has_more:
            check_name(cursor)
            number = self.find_property(cursor, expected)
            skip_colon(cursor)
            if number < 0:
                skip_value(cursor)
            else:
                expected = number + 1
                self.read_property(cursor, number, builder.count)
            has_more = next_item(cursor, CLOSE_OBJECT)
        self.add_absent()
        builder.add()
        return 0

    def read_property(self, cursor: Cursor, number: int, count: int) -> int:
        """Read the value of a property; `count` is the number of objects before this one."""
        column: Builder = self.builders[number]
        if self.rounds[number] == self.round:
            column.rollback(count)
        self.rounds[number] = self.round
        action: Action = self.actions[number]
        action.read(cursor)
        return 0

    def add_absent(self) -> int:
        """Add null for each property that the object does not have."""
        for number in range(self.count):
            if self.rounds[number] != self.round:
                column: Builder = self.builders[number]
                column.add_null()
        return 0

    def find_property(self, cursor: Cursor, expected: int) -> int:
        """Read a name; return its number, -1 for an unknown one. Objects usually have the order of the schema."""
        start = cursor.position
        if skip_string(cursor):
            text = unescape(cursor, start)
        else:
            size = cursor.position - start - 2
            if expected < self.count and self.bounds[expected + 1] - self.bounds[expected] == size:
                first = self.bounds[expected]
                index = 0
                while index < size and self.name_data[first + index] == cursor.data[start + 1 + index]:
                    index += 1
                if index == size:
                    return expected
            text = raw.slice_of(cursor.octets, start + 1, cursor.position - 1)
        number = self.numbers.get(text)
        return -1 if number is None else number
