"""The process of the console: a listening socket, served by uvicorn until Ctrl-C."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ottla.cannot_listen import open_http_listener
from ottla.console.app import app
from ottla.console.cluster import ConsoleCluster
from ottla.console.guard import ConsoleAccess
from ottla.console.pipelines import Pipelines
from ottla.console.touring import Tour
from ottla.console.traced import Traced
from ottla.extras import extra
from ottla.loopback import is_loopback

with extra("console"):
    import uvicorn

if TYPE_CHECKING:
    from ottla.console.schema_registry import ConsoleRegistry

SHUTDOWN_SECONDS = 1
"""The time for which an open stream may delay the shutdown."""


class QuietServer(uvicorn.Server):  # type: ignore[misc]  # untyped where the extra is not there
    """A server that does not log requests that are cut off at shutdown."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class Console:
    """A console with a listening socket; `run` serves it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        host: str = "127.0.0.1",
        port: int = 0,
        trace: str | None = None,
        pipelines: Pipelines | None = None,
        listener: socket.socket | None = None,
        registry: ConsoleRegistry | None = None,
    ) -> None:
        """Use `listener`, which already listens at `host`, or create one. `registry` is closed with the console."""
        self.listener = open_http_listener(host, port) if listener is None else listener
        token = None if is_loopback(host) else secrets.token_urlsafe(24)
        self.door = ConsoleAccess(host, self.listener.getsockname()[1], token)
        self.cluster = ConsoleCluster(settings)
        self.traced = Traced(trace)
        self.tour = Tour()
        self.pipelines = pipelines
        self.registry = registry
        self.server: Any = None

    @property
    def url(self) -> str:
        """Return the URL; the token follows `#`, which browsers do not send to servers."""
        host = f"[{self.door.host}]" if ":" in self.door.host else self.door.host
        return f"http://{host}:{self.door.port}" + (f"/#token={self.door.token}" if self.door.token else "")

    def run(self, ready: Callable[[Console], None]) -> None:
        """Serve until the process receives a signal to stop."""

        @asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[None]:
            ready(self)
            yield
            await self.tour.close()

        config = uvicorn.Config(
            app(self.cluster, self.door, self.traced, self.tour, self.pipelines, lifespan, self.registry),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self.server = QuietServer(config)
        try:
            self.server.run(sockets=[self.listener])
        finally:
            self.cluster.close()
            if self.registry is not None:
                self.registry.close()
            self.listener.close()

    def stop(self) -> None:
        """Make `run` return; may be called by any thread."""
        self.server.should_exit = True
