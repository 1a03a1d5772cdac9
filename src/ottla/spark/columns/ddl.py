"""Parses Spark's schemas from text without Spark: `id bigint, tags array<string>, at struct<x: double>`.

Spark's own parser is in Java, which is not available in the process that returns a source's columns.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.errors import ConfigError

NAMES: dict[str, DataType] = {
    name: kind
    for kind, names in {
        BooleanType(): "boolean",
        ByteType(): "tinyint byte",
        ShortType(): "smallint short",
        IntegerType(): "int integer",
        LongType(): "bigint long",
        FloatType(): "float real",
        DoubleType(): "double",
        StringType(): "string",
        BinaryType(): "binary",
        DateType(): "date",
        TimestampType(): "timestamp timestamp_ltz",
        TimestampNTZType(): "timestamp_ntz",
    }.items()
    for name in names.split()
}
TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|('(?:[^'\\]|\\.|'')*')|([<>(),:]))")


def parse_schema(option: str, text: str) -> StructType:
    """Return a struct from DDL, or from the JSON of `StructType.json()`; every field is nullable."""
    try:
        found = StructType.fromJson(json.loads(text)) if text.lstrip().startswith("{") else Ddl(option, text).schema()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"option {option} = {text!r} is not a Spark schema: {error}") from None
    nullable = found if isinstance(found, StructType) else StructType()
    if not nullable.fields:
        raise ConfigError(f"option {option} = {text!r} has no column; write for example `id bigint, name string`")
    return StructType([StructField(one.name, all_nullable(one.dataType)) for one in nullable.fields])


def all_nullable(kind: DataType) -> DataType:
    """Return the type with null allowed everywhere: records of a topic may lack any field."""
    match kind:
        case StructType():
            return StructType([StructField(one.name, all_nullable(one.dataType)) for one in kind.fields])
        case ArrayType():
            return ArrayType(all_nullable(kind.elementType))
        case MapType():
            return MapType(all_nullable(kind.keyType), all_nullable(kind.valueType))
    return kind


class Ddl:
    def __init__(self, option: str, text: str) -> None:
        self.option, self.text = option, text
        self.at = 0
        inner = re.fullmatch(r"\s*struct\s*<(.*)>\s*", text, re.IGNORECASE | re.DOTALL)
        if inner:
            self.text = inner[1]

    def schema(self) -> StructType:
        """Return the columns of the whole text."""
        fields = self.fields()
        if self.text[self.at :].strip():
            self.refuse("the end, or a comma")
        return StructType(fields)

    def fields(self) -> list[StructField]:
        """Return columns separated by commas, up to the first other text."""
        found = [self.field()]
        while self.accept(","):
            found.append(self.field())
        return found

    def field(self) -> StructField:
        name = self.name()
        self.accept(":")
        kind = self.kind()
        if self.word("not"):
            self.expect_word("null")
        if self.word("comment"):
            self.token("a comment in quotes")
        return StructField(name, kind)

    def kind(self) -> DataType:
        name = self.token("a type").lower()
        if name == "struct":
            self.expect("<")
            fields = [] if self.accept(">") else self.fields()
            if fields:
                self.expect(">")
            return StructType(fields)
        if name == "array":
            (element,) = self.inside(1)
            return ArrayType(element)
        if name == "map":
            key, item = self.inside(2)
            return MapType(key, item)
        if name in ("decimal", "dec", "numeric"):
            return self.decimal()
        if name not in NAMES:
            self.refuse(f"a type instead of {name!r}, for example {', '.join(sorted(NAMES)[:6])}, array<…>, struct<…>")
        return NAMES[name]

    def inside(self, count: int) -> list[DataType]:
        """Return the types between angle brackets."""
        self.expect("<")
        kinds = [self.kind()]
        for _ in range(count - 1):
            self.expect(",")
            kinds.append(self.kind())
        self.expect(">")
        return kinds

    def decimal(self) -> DecimalType:
        if not self.accept("("):
            return DecimalType(10, 0)
        precision, scale = int(self.token("a precision")), 0
        if self.accept(","):
            scale = int(self.token("a scale"))
        self.expect(")")
        if not 0 <= scale <= precision <= 38:
            self.refuse("a precision of at most 38, and a scale within it")
        return DecimalType(precision, scale)

    def name(self) -> str:
        return self.token("a column's name")

    def peek(self) -> re.Match[str] | None:
        return TOKEN.match(self.text, self.at)

    def token(self, wanted: str) -> str:
        """Return the next name, word or quoted text."""
        match = self.peek()
        if match is None or match[4]:
            self.refuse(wanted)
        self.at = match.end()
        return match[1].replace("``", "`") if match[1] else match[2] or match[3]

    def accept(self, sign: str) -> bool:
        """Return True and advance if the sign is next."""
        match = self.peek()
        if match is None or match[4] != sign:
            return False
        self.at = match.end()
        return True

    def word(self, word: str) -> bool:
        match = self.peek()
        if match is None or (match[2] or "").lower() != word:
            return False
        self.at = match.end()
        return True

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.refuse(repr(sign))

    def expect_word(self, word: str) -> None:
        if not self.word(word):
            self.refuse(repr(word))

    def refuse(self, wanted: str) -> NoReturn:
        rest = self.text[self.at :].strip()
        raise ConfigError(f"option {self.option}: expected {wanted} at {rest[:24]!r} of {self.text!r}")
