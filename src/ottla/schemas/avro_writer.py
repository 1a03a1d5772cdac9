"""Write dicts as Avro: one node for each type of a schema, compiled.

A node writes only values of the usual Python type for its Avro type. For all others `write` returns False, and the
caller uses fastavro, which defines what is valid and which error is raised. So both write the same bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from ottla.records import raw

MAX_DEPTH = 64
"""Deeper values of recursive types are left to fastavro."""
MISSING = object()


class Output:
    """The bytes written so far."""

    __slots__ = ("buffer", "depth", "floats", "floats_octets", "numbers", "numbers_octets", "room", "size", "target")

    def __init__(self) -> None:
        self.room = 256
        self.buffer = bytearray(self.room)
        self.target = raw.octets(self.buffer)
        self.size = 0
        self.depth = 0
        numbers, floats = array("d", [0.0]), array("f", [0.0])
        self.numbers = numbers
        self.floats = floats
        self.numbers_octets = memoryview(numbers).cast("B")
        self.floats_octets = memoryview(floats).cast("B")

    def reserve(self, size: int) -> None:
        """Make space for `size` more bytes."""
        if size > self.room - self.size:
            self.room = 2 * self.room + size
            self.buffer += bytes(self.room - len(self.buffer))
            self.target = raw.octets(self.buffer)

    def add_number(self, value: int) -> None:
        """Write a zigzag varint."""
        self.reserve(10)
        self.size = raw.write_varint(self.target, self.size, value)

    def add_bytes(self, data: bytes) -> None:
        """Write bytes without their length."""
        size = len(data)
        self.reserve(size)
        raw.put(self.target, self.size, data, size)
        self.size += size

    def add_slice(self, source: Any, start: int, size: int) -> None:
        """Write a part of a buffer."""
        self.reserve(size)
        raw.copy(self.target, self.size, source, start, size)
        self.size += size

    def add_octet(self, value: int) -> None:
        self.reserve(1)
        self.target[self.size] = value
        self.size += 1

    def add_double(self, value: float) -> None:
        self.reserve(8)
        self.numbers[0] = value
        raw.copy(self.target, self.size, raw.pointer(self.numbers_octets), 0, 8)
        self.size += 8

    def add_float(self, value: float) -> None:
        self.reserve(4)
        self.floats[0] = value
        raw.copy(self.target, self.size, raw.pointer(self.floats_octets), 0, 4)
        self.size += 4


class Node:
    """Writes values of one type."""

    __slots__ = ()

    def write(self, out: Output, datum: Any) -> bool:
        """Write the value; return False, with undefined output, if fastavro has to decide about it."""
        return False


class NullNode(Node):
    __slots__ = ()

    def write(self, out: Output, datum: Any) -> bool:
        return datum is None


class BooleanNode(Node):
    __slots__ = ()

    def write(self, out: Output, datum: Any) -> bool:
        if datum is not True and datum is not False:
            return False
        out.add_bytes(b"\1" if datum is True else b"\0")
        return True


class WholeNode(Node):
    """Writes int and long."""

    __slots__ = ("high", "low")

    def __init__(self, bits: int) -> None:
        self.low = -(1 << (bits - 1))
        self.high = -1 - self.low

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not int:
            return False
        value: int = datum
        if not self.low <= value <= self.high:
            return False
        out.add_number(value)
        return True


class FloatNode(Node):
    __slots__ = ("wide",)

    def __init__(self, wide: bool) -> None:
        self.wide = wide

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not float:
            return False
        if self.wide:
            out.add_double(datum)
            return True
        if not -3.4028234e38 <= datum <= 3.4028234e38:
            return False
        out.add_float(datum)
        return True


class StringNode(Node):
    __slots__ = ()

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not str:
            return False
        data = datum.encode()
        out.add_number(len(data))
        out.add_bytes(data)
        return True


class BytesNode(Node):
    __slots__ = ()

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not bytes:
            return False
        out.add_number(len(datum))
        out.add_bytes(datum)
        return True


class FixedNode(Node):
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not bytes or len(datum) != self.size:
            return False
        out.add_bytes(datum)
        return True


class EnumNode(Node):
    __slots__ = ("numbers",)

    def __init__(self, symbols: list[str]) -> None:
        self.numbers = {symbol: number for number, symbol in enumerate(symbols)}

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not str:
            return False
        number = self.numbers.get(datum)
        if number is None:
            return False
        out.add_number(number)
        return True


class ArrayNode(Node):
    __slots__ = ("item",)

    def __init__(self, item: Node) -> None:
        self.item = item

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not list:
            return False
        if len(datum):
            out.add_number(len(datum))
            for value in datum:
                if not self.item.write(out, value):
                    return False
        out.add_bytes(b"\0")
        return True


class MapNode(Node):
    __slots__ = ("value",)

    def __init__(self, value: Node) -> None:
        self.value = value

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not dict:
            return False
        if len(datum):
            out.add_number(len(datum))
            for key, value in datum.items():
                if type(key) is not str:
                    return False
                data = key.encode()
                out.add_number(len(data))
                out.add_bytes(data)
                if not self.value.write(out, value):
                    return False
        out.add_bytes(b"\0")
        return True


class UnionNode(Node):
    """Chooses the branch by the Python type of a value, if only one branch accepts that type."""

    __slots__ = ("branches", "null_branch", "numbers")

    def __init__(self, branches: list[Node], numbers: dict[type, int], null_branch: int) -> None:
        self.branches = branches
        self.numbers = numbers
        self.null_branch = null_branch

    def write(self, out: Output, datum: Any) -> bool:
        if datum is None:
            if self.null_branch < 0:
                return False
            out.add_number(self.null_branch)
            return True
        number = self.numbers.get(type(datum))
        if number is None or (type(datum) is dict and "-type" in datum):
            return False
        out.add_number(number)
        branch: Node = self.branches[number]
        return branch.write(out, datum)


class PreparedNode(Node):
    """Converts values of a logical type first, as fastavro does it."""

    __slots__ = ("inner", "prepare", "schema")

    def __init__(self, inner: Node, prepare: Callable[[Any, Any], Any], schema: Any) -> None:
        self.inner = inner
        self.prepare = prepare
        self.schema = schema

    def write(self, out: Output, datum: Any) -> bool:
        return self.inner.write(out, self.prepare(datum, self.schema))


class RecordNode(Node):
    __slots__ = ("count", "defaults", "names", "nodes")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.defaults: list[Any] = []
        self.count = 0

    def fill(self, names: list[str], nodes: list[Node], defaults: list[Any]) -> None:
        """Set the fields. They may contain this node."""
        self.names, self.nodes, self.defaults = names, nodes, defaults
        self.count = len(names)

    def write(self, out: Output, datum: Any) -> bool:
        if type(datum) is not dict or out.depth >= MAX_DEPTH:
            return False
        out.depth += 1
        for index in range(self.count):
            value = datum.get(self.names[index], MISSING)
            if value is MISSING:
                value = self.defaults[index]
                if value is MISSING:
                    return False
            node: Node = self.nodes[index]
            if not node.write(out, value):
                return False
        out.depth -= 1
        return True


class Writer:
    """Writes values of a schema, with a prefix."""

    __slots__ = ("out", "root")

    def __init__(self, root: Node) -> None:
        self.root = root

    def write(self, datum: Any, prefix: bytes) -> bytes | None:
        """Return prefix and value; None if fastavro has to write the value."""
        out = Output()
        out.add_bytes(prefix)
        try:
            if not self.root.write(out, datum):
                return None
        except OverflowError:  # of an integer that needs more than 64 bits, in the compiled form
            return None
        return bytes(out.buffer[: out.size])
