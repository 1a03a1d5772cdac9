"""Puts the settings into the documentation: `{{ settings package.module.Class }}` becomes that class's table (a mkdocs hook)."""

from __future__ import annotations

import re
import types
import typing
from importlib import import_module
from typing import Any

from ottla.config import MISSING, Between, Option, Password, options_of

PLACE = re.compile(r"\{\{ settings ([\w.]+)\.(\w+) \}\}")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return PLACE.sub(lambda found: table(getattr(import_module(found[1]), found[2])), markdown)


def table(cls: type[Any]) -> str:
    """The settings of `cls`, one row each."""
    head = "| setting | type | default | |\n|---|---|---|---|\n"
    return head + "".join(row(option) for option in options_of(cls))


def row(option: Option) -> str:
    """One setting."""
    default = "required" if option.default is MISSING else f"`{shown(option.default)}`"
    return f"| `{option.name}` | {kind(option.type)} | {default} | {in_cell(option.doc)} |\n"


def in_cell(text: str) -> str:
    """Prose in one line, as a cell of a table takes it."""
    return " ".join(text.split()).replace("|", "\\|")


def shown(value: Any) -> str:
    """A default as a person would write it in a properties file."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def kind(hint: Any) -> str:
    """A type in words, bounds included."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        bounds = "".join(between(rule) for rule in args[1:] if isinstance(rule, Between))
        return kind(args[0]) + bounds
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{arg}`" for arg in args)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(kind(arg) for arg in args if arg is not type(None))
    if origin is tuple:
        return "list"
    return {
        Password: "text, never shown",
        int: "whole number",
        float: "number",
        bool: "true or false",
        str: "text",
    }.get(hint, "object")


def between(bounds: Between) -> str:
    """Bounds in words."""
    if bounds.least is not None and bounds.most is not None:
        return f" from {bounds.least:,.0f} to {bounds.most:,.0f}"
    if bounds.least is not None:
        return f" from {bounds.least:,.0f}"
    return "" if bounds.most is None else f" up to {bounds.most:,.0f}"
