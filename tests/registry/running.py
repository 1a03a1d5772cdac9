"""A registry in a thread of the test, and a small client for it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings

PATIENCE = 20.0


class Answer(NamedTuple):
    """A response."""

    status: int
    body: Any


class RegistryClient:
    """Sends requests to a registry."""

    def __init__(self, address: str) -> None:
        self.address = address

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request with a JSON body; a text is sent as it is."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        sent = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        connection.request(method, path, sent, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return Answer(response.status, json.loads(text) if text else None)

    def get(self, path: str) -> Any:
        """Return the body of a successful GET."""
        answer = self.request("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def register(self, subject: str, schema: Any, kind: str | None = None, **others: Any) -> Answer:
        """Register a schema, given as a text or as JSON."""
        text = schema if isinstance(schema, str) and kind != "AVRO" else json.dumps(schema)
        body = {"schema": text, **others} | ({"schemaType": kind} if kind else {})
        return self.request("POST", f"/subjects/{subject}/versions", body)


@contextmanager
def running_registry(bootstrap_servers: str, **settings: Any) -> Iterator[RegistryServer]:
    """Run a registry in a thread until the end of the block."""
    server = RegistryServer(RegistrySettings({"bootstrap.servers": bootstrap_servers}, port=0, **settings))
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(lambda _: ready.set(),))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
