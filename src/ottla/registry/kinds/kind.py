"""The interface of a format, and the limits that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from ottla.registry.errors import SchemaLimitError

MOST_TEXT = 1 << 20
"""The limit on the characters of one schema."""
MOST_TEXT_WITH_REFERENCES = 8 << 20
"""The limit on the characters of a schema and all that it refers to."""
MOST_REFERENCES = 1_000
MOST_DEPTH = 128
"""The limit on nested types."""
MOST_COMPARISONS = 60_000
"""The limit on pairs of types in one comparison. A schema of 1 MB has some 20,000 types."""
MOST_MESSAGES = 100
"""The limit on the differences that one comparison reports."""


class NamedText(msgspec.Struct, frozen=True):
    """The text of a referenced schema, under the name that the referring text uses."""

    name: str
    text: str


class ParsedSchema(Protocol):
    """A parsed schema."""

    @property
    def canonical(self) -> str:
        """The text that is stored."""

    def normalized(self) -> str:
        """Return the text with everything that has no meaning in a fixed order."""

    def differences_from(self, writer: Any) -> list[str]:
        """Return why a reader with this schema cannot read data of `writer`; nothing if it can."""


class SchemaKind(Protocol):
    """A format."""

    name: str

    def parse(self, text: str, references: Sequence[NamedText]) -> ParsedSchema:
        """Parse a text; referenced schemas come before those that refer to them.

        Raise InvalidSchemaError with the reason.
        """


class Budget:
    """Counts the steps of a comparison, and ends one that would take too long."""

    def __init__(self, most: int = MOST_COMPARISONS) -> None:
        self._most = most
        self._count = 0

    def spend(self) -> None:
        """Count a step; raise SchemaLimitError beyond the limit."""
        self._count += 1
        if self._count > self._most:
            raise SchemaLimitError(
                f"comparing the schemas takes more than {self._most} steps: use fewer alternatives or smaller types"
            )


def difference(error: str, description: str, detail: object = "") -> str:
    """Return one message of a comparison, in the form that Confluent's interface has."""
    return f"{{errorType:'{error}', description:'{description}', additionalInfo:'{detail}'}}"


def check_depth(value: Any) -> None:
    """Raise SchemaLimitError if a JSON value is nested too deeply. Needs no recursion itself."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH * 3:  # a nested type takes up to three levels of JSON
            raise SchemaLimitError(f"the schema is nested deeper than {MOST_DEPTH} types: use named types")
        level = [
            each
            for one in level
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list)
        ]
