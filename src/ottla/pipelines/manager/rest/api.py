"""Dispatches requests to functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

from ottla.errors import OttlaError
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.rest import connectors, own, plugins
from ottla.pipelines.manager.rest.answers import RestError, RestResponse, not_found_error
from ottla.pipelines.manager.served_tables import ServedTables


class RestRequest(NamedTuple):
    """A request with its context."""

    manager: Manager
    tables: ServedTables
    names: Mapping[str, str]
    """The values of the path parameters."""
    query: Mapping[str, list[str]]
    body: bytes
    worker_id: str
    identity: str
    """Distinguishes this manager from earlier ones at the same address."""


Function = Callable[[Any], RestResponse]
ROUTES: list[tuple[str, str, Function]] = [
    ("GET", "/", own.root),
    ("GET", "/pipelines", own.pipelines),
    ("GET", "/tables", own.tables),
    ("GET", "/tables/{name}/{key}", own.value),
    *connectors.ROUTES,
    *plugins.ROUTES,
]


def compile_path(path: str) -> re.Pattern[str]:
    """Return the expression for a path with parameters."""
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


PATTERNS = [(method, compile_path(path), function) for method, path, function in ROUTES]


class RestApi:
    """Answers requests about a manager; thread-safe."""

    def __init__(self, manager: Manager, tables: ServedTables, worker_id: str, identity: str) -> None:
        self._manager, self._tables, self._worker_id, self._identity = manager, tables, worker_id, identity

    def answer(self, method: str, target: str, body: bytes) -> RestResponse:
        """Return the response to a request; errors are responses too."""
        try:
            return self._answer(method, target, body)
        except RestError as error:
            return error.to_response()
        except OttlaError as error:
            return RestError(409, str(error)).to_response()
        except OSError as error:
            return RestError(500, f"{error.filename}: {error.strerror}").to_response()

    def _answer(self, method: str, target: str, body: bytes) -> RestResponse:
        path, _, query_text = target.partition("?")  # not urlsplit, which would remove the host of `//host/path`
        path = path.rstrip("/") or "/"
        fitting = [
            (one, found, call) for one, path_pattern, call in PATTERNS if (found := path_pattern.fullmatch(path))
        ]
        for one, found, function in fitting:
            if one == method:
                names = {name: unquote(text) for name, text in found.groupdict().items()}
                query = parse_qs(query_text, keep_blank_values=True)
                request = RestRequest(self._manager, self._tables, names, query, body, self._worker_id, self._identity)
                return function(request)
        if fitting:
            there = ", ".join(sorted({one for one, _, _ in fitting}))
            raise RestError(
                405, f"{method} {path}: allowed are {there}; pipelines are defined by the pipeline file, not here"
            )
        raise not_found_error(f"no such path: {path}")
