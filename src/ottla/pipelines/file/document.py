"""YAML as plain values, and where each of them stands.

YAML 1.2: `yes` and `on` are text. Keys are text and given once; anchors, aliases and `<<` work, one document a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.extras import extra
from ottla.pipelines.place import Mistake, PipelineFileError, Place

Path = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""

MOST_VALUES = 100_000
"""A file whose aliases multiply beyond this is a mistake or a bomb."""
DEEPEST = 100
"""Levels of values within values. Reading takes the square of their number."""
TAG = "tag:yaml.org,2002:"
NULL, TRUE = "null", "true"
FOLDED, FOLD = ">", "\a"
"""Text whose lines are folded, and what the library leaves in it at each fold, to write it the same way again."""


class Document(NamedTuple):
    file: str
    value: Any
    places: Mapping[Path, Place]
    """Of each value; of the value of a key, the place of the key."""

    def place(self, path: Path) -> Place:
        """Where it stands, or else what it would stand in."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file))


def read_document(data: bytes, file: str) -> Document:
    """The values of a file; PipelineFileError where it is no YAML that we take."""
    with extra("pipelines"):
        from ruamel.yaml import YAML
        from ruamel.yaml.composer import MaxDepthExceededError
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text = decoded(data, file)
    try:
        yaml = YAML(typ="rt", pure=True)
        yaml.max_depth = DEEPEST
        root = yaml.compose(text)
        reader = Reader(file)
        value = reader.value(root, ()) if root is not None else None
    except MaxDepthExceededError as error:
        place = Place(file, error.problem_mark.line + 1, error.problem_mark.column + 1)
        raise mistake(place, f"values stand in values more than {DEEPEST} deep; write it flatter") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        raise mistake(
            place, f"this is no YAML: {one_line(error.problem or error.context)}; {shown(text, place)}"
        ) from None
    except YAMLError as error:
        raise mistake(Place(file), f"this is no YAML: {one_line(error)}") from None
    except RecursionError:
        raise mistake(Place(file), "it is nested too deeply to be read; write it flatter") from None
    except (ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        # The library's own slips on damaged text.
        raise mistake(Place(file), f"this is no YAML: {one_line(error) or type(error).__name__}") from None
    return Document(file, value, reader.places)


def decoded(data: bytes, file: str) -> str:
    """The text of a file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise mistake(place, f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def mistake(place: Place, sentence: str) -> PipelineFileError:
    return PipelineFileError([Mistake(place, sentence)])


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def shown(text: str, place: Place) -> str:
    """The line that it is about."""
    lines = text.splitlines()
    line = lines[place.line - 1].strip() if place.line <= len(lines) else ""
    return f"look at {line[:60]!r}" if line else "look at what stands before it"


class Reader:
    """Turns YAML's nodes into values, and remembers where they stood."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Path, Place] = {}
        self._open: list[Any] = []

    def value(self, node: Any, path: Path) -> Any:
        """The value of a node and of all in it."""
        self.places.setdefault(path, self._place(node))
        if len(self.places) > MOST_VALUES:
            raise mistake(self._place(node), f"its aliases make more than {MOST_VALUES:,} values; repeat less")
        if any(node is outer for outer in self._open):
            raise mistake(self._place(node), "this alias names something that it stands in; name something else")
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
                raise mistake(self._place(key), f"key {name!r} is given twice here; give it once")
            self.places[*path, name] = self._place(key)
            values[name] = self.value(value, (*path, name))
        for other in merged:
            values = self._merged(other, path) | values
        return values

    def _merged(self, node: Any, path: Path) -> dict[str, Any]:
        """What `<<` brings; the keys beside it win."""
        if not is_mapping(node):
            raise mistake(self._place(node), "<< takes a mapping, or a list of them; name one with *")
        before = dict(self.places)
        found = self.value(node, path)
        self.places |= before
        assert isinstance(found, dict)
        return found

    def _key(self, node: Any) -> str:
        if not isinstance(node.value, str):
            raise mistake(self._place(node), "a key must be text, not a list or a mapping")
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
            raise mistake(self._place(node), f"the tag {str(node.tag)!r} means nothing here; leave it out")
        return text

    def _place(self, node: Any) -> Place:
        mark = node.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1)


def is_mapping(node: Any) -> bool:
    """Whether its value is pairs."""
    return type(node).__name__ == "MappingNode"


def whole_number(text: str) -> int:
    """YAML 1.2's: `0o` and `0x`, and nothing else, are other than decimal."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    base = {"0o": 8, "0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    return sign * int(digits if base == 10 else digits[2:], base)


def number(text: str) -> float:
    """With YAML's names for what is no number."""
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


NUMBERS = {"int": whole_number, "float": number}
