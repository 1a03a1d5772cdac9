"""YAML as plain values, with the place of each value.

The language is YAML 1.2: `yes` and `on` are text. Keys are text and unique; anchors, aliases and `<<` are supported; a
file has one document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.extras import extra
from ottla.pipelines.place import Mistake, PipelineFileError, Place

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

MOST_VALUES = 100_000
"""The limit on values, which protects against aliases that multiply."""
DEEPEST = 100
"""The limit on nesting. The time to read is quadratic in it."""
TAG = "tag:yaml.org,2002:"
NULL, TRUE = "null", "true"
FOLDED, FOLD = ">", "\a"
"""The style of folded text, and the character that the library leaves in the text at each fold."""


class Document(NamedTuple):
    file: str
    value: Any
    places: Mapping[Path, Place]
    """The place of each value; for the value of a key, the place of the key."""

    def place(self, path: Path) -> Place:
        """Return the place of a value, or of the innermost value around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file))


def read_document(data: bytes, file: str) -> Document:
    """Return the values of a file; PipelineFileError if it is not valid YAML."""
    with extra("pipelines"):
        from ruamel.yaml import YAML
        from ruamel.yaml.composer import MaxDepthExceededError
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text = decode_text(data, file)
    try:
        yaml = YAML(typ="rt", pure=True)
        yaml.max_depth = DEEPEST
        root = yaml.compose(text)
        reader = DocumentReader(file)
        value = reader.value(root, ()) if root is not None else None
    except MaxDepthExceededError as error:
        place = Place(file, error.problem_mark.line + 1, error.problem_mark.column + 1)
        raise make_mistake(place, f"values are nested more than {DEEPEST} levels deep; reduce the nesting") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        raise make_mistake(
            place, f"this is not YAML: {one_line(error.problem or error.context)}; {quote_line(text, place)}"
        ) from None
    except YAMLError as error:
        raise make_mistake(Place(file), f"this is not YAML: {one_line(error)}") from None
    except RecursionError:
        raise make_mistake(Place(file), "it is nested too deeply; reduce the nesting") from None
    except (ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        # The library fails on damaged text with these exceptions too.
        raise make_mistake(Place(file), f"this is not YAML: {one_line(error) or type(error).__name__}") from None
    return Document(file, value, reader.places)


def decode_text(data: bytes, file: str) -> str:
    """Return the text of a file; PipelineFileError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise make_mistake(place, f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def make_mistake(place: Place, sentence: str) -> PipelineFileError:
    return PipelineFileError([Mistake(place, sentence)])


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def quote_line(text: str, place: Place) -> str:
    """Return the part of a message that quotes the line of the place."""
    lines = text.splitlines()
    line = lines[place.line - 1].strip() if place.line <= len(lines) else ""
    return f"see {line[:60]!r}" if line else "see the text before it"


class DocumentReader:
    """Converts YAML nodes to values and records their places."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Path, Place] = {}
        self._open: list[Any] = []

    def value(self, node: Any, path: Path) -> Any:
        """Return the value of a node and of all nodes in it."""
        self.places.setdefault(path, self._place(node))
        if len(self.places) > MOST_VALUES:
            raise make_mistake(
                self._place(node), f"with its aliases it has more than {MOST_VALUES:,} values; use fewer aliases"
            )
        if any(node is outer for outer in self._open):
            raise make_mistake(
                self._place(node), "this alias refers to a value that contains it; refer to another value"
            )
        self._open.append(node)
        try:
            if isinstance(node.value, str):
                return self._scalar(node)
            if is_mapping(node):
                return self._mapping(node, path)
            return [self.value(one, (*path, number)) for number, one in enumerate(node.value)]
        finally:
            self._open.pop()

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[Any] = []
        for key, value in node.value:
            if key.tag == TAG + "merge":
                merged += value.value if not is_mapping(value) and isinstance(value.value, list) else [value]
                continue
            name = self._key(key)
            if name in values:
                raise make_mistake(self._place(key), f"key {name!r} is given twice here; give it once")
            self.places[*path, name] = self._place(key)
            values[name] = self.value(value, (*path, name))
        for other in merged:
            values = self._merged(other, path) | values
        return values

    def _merged(self, node: Any, path: Path) -> dict[str, Any]:
        """Return the keys merged by `<<`; the keys of the mapping itself take precedence."""
        if not is_mapping(node):
            raise make_mistake(self._place(node), "<< needs a mapping, or a list of mappings; refer to one with *")
        before = dict(self.places)
        found = self.value(node, path)
        self.places |= before
        assert isinstance(found, dict)
        return found

    def _key(self, node: Any) -> str:
        if not isinstance(node.value, str):
            raise make_mistake(self._place(node), "a key must be text, not a list or a mapping")
        return node.value

    def _scalar(self, node: Any) -> Any:
        kind, text = str(node.tag).removeprefix(TAG), node.value
        if node.style == FOLDED:
            text = text.replace(FOLD, "")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == TRUE
        if kind in NUMBERS:
            try:
                return NUMBERS[kind](text.replace("_", ""))
            except ValueError:
                return text
        if kind not in ("str", "timestamp", "merge", "value"):
            raise make_mistake(self._place(node), f"the tag {str(node.tag)!r} is not supported; leave it out")
        return text

    def _place(self, node: Any) -> Place:
        mark = node.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1)


def is_mapping(node: Any) -> bool:
    """Return True if the node's value is pairs of keys and values."""
    return type(node).__name__ == "MappingNode"


def whole_number(text: str) -> int:
    """Return an integer of YAML 1.2: decimal, or with `0o`, `0x` or `0b`."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    base = {"0o": 8, "0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    return sign * int(digits if base == 10 else digits[2:], base)


def number(text: str) -> float:
    """Return a float, with YAML's names for infinity and NaN."""
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


NUMBERS = {"int": whole_number, "float": number}
