"""Which function answers which request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

from ottla.errors import OttlaError
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.rest import connectors, own, plugins
from ottla.pipelines.manager.rest.answers import Answer, RestError, not_found
from ottla.pipelines.manager.served_tables import ServedTables


class Asked(NamedTuple):
    """A request as the functions see it."""

    manager: Manager
    tables: ServedTables
    names: Mapping[str, str]
    """What stands in the path where its pattern has names."""
    query: Mapping[str, list[str]]
    body: bytes
    worker_id: str
    identity: str
    """Tells this manager from others that had its address before."""


Function = Callable[[Any], Answer]
ROUTES: list[tuple[str, str, Function]] = [
    ("GET", "/", own.root),
    ("GET", "/pipelines", own.pipelines),
    ("GET", "/tables", own.tables),
    ("GET", "/tables/{name}/{key}", own.value),
    *connectors.ROUTES,
    *plugins.ROUTES,
]


def pattern(path: str) -> re.Pattern[str]:
    """The expression of a path with names in it."""
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


PATTERNS = [(method, pattern(path), function) for method, path, function in ROUTES]


class Api:
    """Answers requests about a manager; from any thread."""

    def __init__(self, manager: Manager, tables: ServedTables, worker_id: str, identity: str) -> None:
        self._manager, self._tables, self._worker_id, self._identity = manager, tables, worker_id, identity

    def answer(self, method: str, target: str, body: bytes) -> Answer:
        """The answer to a request; what is wrong with it is one as well."""
        try:
            return self._answer(method, target, body)
        except RestError as error:
            return error.answer()
        except OttlaError as error:
            return RestError(409, str(error)).answer()
        except OSError as error:
            return RestError(500, f"{error.filename}: {error.strerror}").answer()

    def _answer(self, method: str, target: str, body: bytes) -> Answer:
        path, _, query_text = target.partition("?")  # not urlsplit: in `//host/path` it takes the host off
        path = path.rstrip("/") or "/"
        fitting = [
            (one, found, call) for one, path_pattern, call in PATTERNS if (found := path_pattern.fullmatch(path))
        ]
        for one, found, function in fitting:
            if one == method:
                names = {name: unquote(text) for name, text in found.groupdict().items()}
                query = parse_qs(query_text, keep_blank_values=True)
                asked = Asked(self._manager, self._tables, names, query, body, self._worker_id, self._identity)
                return function(asked)
        if fitting:
            there = ", ".join(sorted({one for one, _, _ in fitting}))
            raise RestError(
                405, f"{method} {path}: only {there}; what runs is defined by the pipeline file, and not here"
            )
        raise not_found(f"there is nothing at {path}")
