"""Finds the manager that runs a pipeline, and sends requests to it.

A manager writes its address and a random identity to the folder of each of its pipelines. If the address answers with
another identity, or not at all, that manager was killed.
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
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.rest.api import RestApi
from ottla.pipelines.manager.rest.server import bind_server, serve_in_block
from ottla.pipelines.manager.served_tables import ServedTables, tables_of
from ottla.pipelines.manager.state_directory import StateDirectory, read_json, write_json

ANY_PORT = "127.0.0.1:0"
ANSWER_SECONDS = 90.0


@contextmanager
def serve_control(manager: Manager, listen: str = ANY_PORT) -> Iterator[str]:
    """Serve requests to a manager until the end of the block; return the address."""
    identity = secrets.token_hex(8)
    tables = ServedTables(tables_of(runner.built.read for runner in manager.runners))
    apis: list[RestApi] = []
    server = bind_server(listen, lambda method, target, body: apis[0].answer(method, target, body))
    apis.append(RestApi(manager, tables, server.address, identity))
    known = {"address": server.address, "manager": identity, "process": os.getpid()}
    with serve_in_block(server):
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
    """A manager in another process."""

    def __init__(self, address: str) -> None:
        self.address = address

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response; OttlaError with the message of an error."""
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

    def request_connector(self, method: str, name: str, *path: str, body: Any = None) -> Any:
        """Send a request about one pipeline."""
        return self.request(method, "/".join(("/connectors", quote(name, safe=""), *path)), body)


def manager_of(home: StateDirectory) -> Remote | None:
    """Return the manager that runs this pipeline, or holds it stopped; None if there is none."""
    known = read_json(home.folder / "control.json")
    if known is None:
        if home.is_locked():
            raise ConfigError(
                f"pipeline {home.name!r} is run by a program that does not serve requests; control it from that program"
            )
        return None
    remote = Remote(str(known.get("address", "")))
    try:
        answer = remote.request("GET", "/")
    except (OSError, HTTPException, OttlaError, ValueError):
        answer = None
    if isinstance(answer, dict) and answer.get("manager") == known.get("manager"):
        return remote
    if home.is_locked():
        raise ConfigError(
            f"pipeline {home.name!r} is run by process {known.get('process')}, which does not answer; try again"
        )
    return None
