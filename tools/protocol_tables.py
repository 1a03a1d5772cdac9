"""Puts what is spoken into the documentation: `{{ protocol apis }}`, `{{ protocol codes }}`, `{{ protocol errors }}` (a mkdocs hook)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import ottla
from ottla.errors import RETRIABLE, ErrorCode, OttlaError
from ottla.protocol.apis import DECLARED, ELSEWHERE, NOT_SERVED
from ottla.protocol.schema import Range
from tools.settings_tables import in_cell

PLACE = re.compile(r"\{\{ protocol (\w+) \}\}")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return PLACE.sub(lambda found: TABLES[found[1]](), markdown)


def apis() -> str:
    """Return the table of Kafka 4.4's APIs: the nodes that serve them, and the versions."""
    rows = ["| key | API | versions | served by |\n|---|---|---|---|"]
    for key in sorted({*DECLARED, *ELSEWHERE}):
        if (declared := DECLARED.get(key)) and key not in NOT_SERVED:
            place = "controllers" if declared.to_controller else "brokers"
            rows.append(f"| {key} | {declared.name} | {spoken(declared.advertised)} | {place} |")
        else:
            rows.append(f"| {key} | {ELSEWHERE[key]} | – | not here |")
    return "\n".join(rows)


def spoken(versions: Range) -> str:
    return str(versions.first) if versions.first == versions.last else f"{versions.first}–{versions.last}"


def codes() -> str:
    """Kafka's error codes."""
    rows = ["| code | name | may go away by itself |\n|---|---|---|"]
    rows += [f"| {code.value} | `{code.name}` | {'yes' if code in RETRIABLE else ''} |" for code in ErrorCode]
    return "\n".join(rows)


def errors() -> str:
    """The exceptions that a program may catch by a name of `ottla`, under what they are kinds of."""
    rows = ["| exception | is a | when |\n|---|---|---|"]
    rows += [f"| `{each.__name__}` | `{each.__bases__[0].__name__}` | {said(each)} |" for each in public()]
    return "\n".join(rows)


def public() -> Iterator[type[Any]]:
    named = (getattr(ottla, name) for name in dir(ottla))
    return (each for each in named if isinstance(each, type) and issubclass(each, OttlaError))


def said(error: type[Any]) -> str:
    """The first paragraph of its docstring."""
    return in_cell((error.__doc__ or "").partition("\n\n")[0])


TABLES: dict[str, Callable[[], str]] = {"apis": apis, "codes": codes, "errors": errors}
