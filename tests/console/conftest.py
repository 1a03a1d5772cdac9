"""A broker, and a listening console for it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.console.pipelines import Pipelines
from ottla.console.schema_registry import ConsoleRegistry
from ottla.console.server import Console

PATIENCE = 60.0


class Browser:
    """Sends the requests that the page sends."""

    def __init__(self, console: Console) -> None:
        self.door = console.door
        self.host = f"127.0.0.1:{console.door.port}"

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def ask(self, path: str, **given: Any) -> Any:
        status, _, body = self.send("GET", f"/api/{path}?{urlencode(given)}")
        assert status == 200, body
        return json.loads(body)

    def order(self, path: str, **given: Any) -> tuple[int, Any]:
        kind = {"Content-Type": "application/json", "Origin": f"http://{self.host}"}
        status, _, body = self.send("POST", f"/api/{path}", json.dumps(given).encode(), **kind)
        return status, json.loads(body)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def browser(broker: Broker) -> Iterator[Browser]:
    with browser_of(broker.bootstrap_servers) as browser:
        yield browser


@contextmanager
def browser_of(
    address: str,
    trace: str | None = None,
    pipelines: Pipelines | None = None,
    registry: ConsoleRegistry | None = None,
    **more: Any,
) -> Iterator[Browser]:
    """Yield a browser of a console for the cluster at `address`."""
    console = Console({"bootstrap.servers": address, **more}, trace=trace, pipelines=pipelines, registry=registry)
    ready = threading.Event()
    thread = threading.Thread(target=console.run, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(PATIENCE)
    yield Browser(console)
    console.stop()
    thread.join(PATIENCE)
    assert not thread.is_alive()
