"""How commands find the manager that runs a pipeline, and what they ask of it.

The manager writes its address into the folder of each of its pipelines. An address that answers as another manager, or not at
all, is one of a manager that was killed.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote

from ottla.errors import ConfigError, OttlaError
from ottla.pipelines.manager.home import Home, read_json, write_json
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.rest.api import Api
from ottla.pipelines.manager.rest.server import bound, serving
from ottla.pipelines.manager.served_tables import ServedTables, tables_of

ANY_PORT = "127.0.0.1:0"
ANSWER_SECONDS = 90.0


@contextmanager
def controlled(manager: Manager, listen: str = ANY_PORT) -> Iterator[str]:
    """A manager that can be reached from outside until the end of the `with` statement; its address."""
    identity = secrets.token_hex(8)
    tables = ServedTables(tables_of(runner.built.read for runner in manager.runners))
    apis: list[Api] = []
    server = bound(listen, lambda method, target, body: apis[0].answer(method, target, body))
    apis.append(Api(manager, tables, server.address, identity))
    known = {"address": server.address, "manager": identity, "process": os.getpid()}
    with serving(server):
        tables.start()
        for home in manager.homes.values():
            write_json(home.folder / "control.json", known)
        try:
            yield server.address
        finally:
            for home in manager.homes.values():
                with suppress(OSError):
                    (home.folder / "control.json").unlink(missing_ok=True)
            tables.close()


class Remote:
    """A manager that runs in another process."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer; OttlaError with the sentence of one that is an error."""
        host, _, port = self.address.rpartition(":")
        connection = HTTPConnection(host.strip("[]"), int(port), timeout=ANSWER_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        value = json.loads(data) if data else None
        if response.status >= 400:
            raise OttlaError(value["message"] if isinstance(value, dict) else f"HTTP {response.status}")
        return value

    def connector(self, method: str, name: str, *path: str, body: Any = None) -> Any:
        """A request about one pipeline."""
        return self.ask(method, "/".join(("/connectors", quote(name, safe=""), *path)), body)


def manager_of(home: Home) -> Remote | None:
    """Who runs this pipeline, or has stopped it and would go on with it; None where nobody does."""
    known = read_json(home.folder / "control.json")
    if known is None:
        if home.is_taken():
            raise ConfigError(f"pipeline {home.name!r} is run by a program that does not listen; control it from there")
        return None
    remote = Remote(str(known.get("address", "")))
    try:
        answer = remote.ask("GET", "/")
    except (OSError, HTTPException, OttlaError, ValueError):
        answer = None
    if isinstance(answer, dict) and answer.get("manager") == known.get("manager"):
        return remote
    if home.is_taken():
        raise ConfigError(
            f"pipeline {home.name!r} is run by process {known.get('process')}, which does not answer; try again"
        )
    return None
