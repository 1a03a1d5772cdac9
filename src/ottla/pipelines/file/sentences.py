"""Converts pydantic's errors to mistakes of one sentence with a place.

A location of pydantic has the keys of the file, and names of types between them; the document distinguishes them.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Tag

from ottla.config import unknown
from ottla.pipelines.file.connects_names import remedy_for_key, store_for, type_for
from ottla.pipelines.file.document import Document, Path
from ottla.pipelines.place import Mistake

Loc = Sequence[str | int]
LONGEST = 60

KINDS = {
    "string_type": "text; put it in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping, of keys and values",
    "model_type": "a mapping, of keys and values",
    "model_attributes_type": "a mapping, of keys and values",
}
"""The expected value, by pydantic's type of error."""


def mistakes_in(document: Document, model: type[BaseModel], errors: Iterable[Mapping[str, Any]]) -> list[Mistake]:
    """Return each mistake once."""
    found: dict[Mistake, None] = {}
    errors = list(errors)
    for error in errors:
        path = path_of(document, error["loc"])
        text = sentence(document, model, error, path)
        found.setdefault(Mistake(document.place(path), text))
    return merge_mistakes(list(found))


def merge_mistakes(mistakes: list[Mistake]) -> list[Mistake]:
    """Merge the mistakes of one value that may have several types into one."""
    by_place: dict[Any, list[Mistake]] = {}
    for one in mistakes:
        by_place.setdefault((one.place, one.sentence.split(": must be ")[0]), []).append(one)
    result = []
    for same in by_place.values():
        if len(same) == 1 or not all(": must be " in one.sentence for one in same):
            result += same
            continue
        expected = dict.fromkeys(one.sentence.split(": must be ", 1)[1].partition(";")[0] for one in same)
        result.append(
            Mistake(same[0].place, f"{same[0].sentence.split(': must be ')[0]}: must be {' or '.join(expected)}")
        )
    return result


def path_of(document: Document, loc: Loc) -> Path:
    """Return the keys of a location, without the names of types."""
    path: Path = ()
    for item in loc:
        if (*path, item) in document.places:
            path = (*path, item)
    return path


def value_at(document: Document, path: Path) -> Any:
    value = document.value
    for item in path:
        value = value[item]
    return value


def sentence(document: Document, model: type[BaseModel], error: Mapping[str, Any], path: Path) -> str:
    """Return the description: what is wrong, the value and the remedy."""
    kind, loc = str(error["type"]), tuple(error["loc"])
    value = value_at(document, path)
    if kind == "missing":
        return f"{name_value(path)} needs the key {str(loc[-1])!r}"
    if kind == "extra_forbidden":
        return unknown_key(str(loc[-1]), keys_at(model, loc[:-1]))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return wrong_choice(value, path, choices(model, loc))
    subject = f"{path[-1] if path else 'the file'} = {describe_value(value)}"
    if kind == "string_type" and isinstance(value, dict | list):
        return f"{subject}: must be {as_text(path, value)}"
    if kind in KINDS:
        return f"{subject}: must be {KINDS[kind]}"
    context = error.get("ctx") or {}
    if kind == "literal_error":
        allowed = [text.strip().strip("'") for text in str(context["expected"]).replace(" or ", ",").split(",")]
        close = unknown("value", value, allowed).partition("; ")[2]
        return f"{subject}: must be {' or '.join(allowed)}" + (f"; {close}" if close else "")
    if kind == "greater_than_equal":
        return f"{subject}: must be at least {context['ge']}"
    if kind == "too_short":
        return f"{subject}: must have at least {context['min_length']}"
    if "error" in context:
        text = str(context["error"])
        return (
            text
            if re.search(rf"\b{re.escape(str(path[-1] if path else ''))}\b", text)
            else f"{name_value(path)}: {text}"
        )
    return f"{subject}: {str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"


def as_text(path: Path, value: Any) -> str:
    """Return the remedy for a mapping or a list in place of a text."""
    key = str(path[-1]) if path else ""
    if not key.lower().endswith("schema"):
        return f"text; write one value, and not {describe_value(value)}"
    is_of_columns = isinstance(value, dict) and value and all(isinstance(one, str) for one in value.values())
    if isinstance(value, dict) and "fields" in value:
        return f"text; write the JSON of the schema in single quotes, such as {key}: '{{\"type\": …}}'"
    if is_of_columns:
        columns = ", ".join(f"{name} {kind}" for name, kind in value.items())
        return f'text, the columns with commas between; write {key}: "{shorten_text(columns)}"'
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return f'text, the columns with commas between; write {key}: "{shorten_text(", ".join(value))}"'
    return f'text, the columns with commas between, such as {key}: "id bigint, name string"'


def shorten_text(text: str) -> str:
    return text if len(text) <= 3 * LONGEST else text[: 3 * LONGEST - 1] + "…"


def name_value(path: Path) -> str:
    """Return the name of a value for a message: its last key."""
    if not path:
        return "the file"
    last = path[-1]
    return f"{path[-2]} number {last + 1}" if isinstance(last, int) and len(path) > 1 else str(last)


def describe_value(value: Any) -> str:
    """Return a short form of a value; for a mapping or a list only its kind."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def unknown_key(name: str, known: Sequence[str]) -> str:
    """Return the text for an unknown key: its name here, a similar key, or all valid keys."""
    if (remedy := remedy_for_key(name, known)) is not None:
        return f"unknown key {name!r}; {remedy}"
    text = unknown("key", name, known)
    return text if "; did you mean" in text or not known else f"{text}; the keys are {', '.join(known)}"


def wrong_choice(value: Any, path: Path, known: Sequence[str]) -> str:
    """Return the text for a source, sink or transform without a type or with an unknown one."""
    what = str(next((one for one in reversed(path) if isinstance(one, str)), "value")).removesuffix("s")
    types = [name for name in known if name not in ("sql", "function")]
    others = ", or a key sql or function" if len(types) < len(known) else ""
    if not isinstance(value, dict):
        return f"{name_value(path)} = {describe_value(value)}: must be a mapping with the key 'type'{others}"
    kind = value.get("type")
    if kind is None:
        return f"{name_value(path)} needs the key 'type', one of {', '.join(types)}{others}"
    if (intended := type_for(str(kind), types)) is not None and what != "transform":
        return f"unknown type of {what} {kind!r}; here it is {intended!r}"
    if what != "transform" and "files" in types and (store := store_for(str(kind))) is not None:
        return f"unknown type of {what} {kind!r}; {store}"
    text = unknown(f"type of {what}", kind, types)
    return f"{text}; the types are {', '.join(types)}" if "did you mean" not in text else text


def choices(model: type[BaseModel], loc: Loc) -> list[str]:
    """Return the names of the models that are valid at a location."""
    return [name.strip("«»") for name in union_members(hint_at(model, loc))]


def keys_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """Return the keys of the model at a location."""
    hint = strip_annotations(hint_at(model, loc))
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [field.alias or name for name, field in hint.model_fields.items()]
    return []


def hint_at(model: Any, loc: Loc) -> Any:
    """Return the type at a location of pydantic."""
    hint = model
    for item in loc:
        hint = step(hint, item)
    return hint


def step(hint: Any, item: str | int) -> Any:
    """Return the type one item further."""
    by_tag = union_members(hint)
    if by_tag:
        return by_tag.get(str(item))
    hint = strip_annotations(hint)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        fields = [field for name, field in hint.model_fields.items() if (field.alias or name) == item]
        return fields[0].annotation if fields else None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    return arguments[-1] if origin in (dict, list) else hint


def strip_annotations(hint: Any) -> Any:
    """Return a type without its annotations and without None."""
    if typing.get_origin(hint) is typing.Annotated:
        return strip_annotations(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        others = [one for one in typing.get_args(hint) if one is not type(None)]
        return strip_annotations(others[0]) if len(others) == 1 else hint
    return hint


def union_members(hint: Any) -> dict[str, Any]:
    """Return the models of a tagged union by tag."""
    hint = strip_annotations(hint)
    found = {}
    for one in typing.get_args(hint):
        for about in getattr(one, "__metadata__", ()):
            if isinstance(about, Tag):
                found[about.tag] = typing.get_args(one)[0]
    return found
