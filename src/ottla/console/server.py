"""The console's process: a listener, and uvicorn on it until Ctrl-C."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ottla.console.app import app
from ottla.console.cluster import Cluster
from ottla.console.guard import Door
from ottla.console.listening import listener_at
from ottla.console.pipelines import Pipelines
from ottla.console.touring import Tour
from ottla.console.traced import Traced
from ottla.extras import extra
from ottla.loopback import is_loopback

with extra("console"):
    import uvicorn

FAREWELL_SECONDS = 1
"""How long a page that is being told something may hold up the end."""


class QuietServer(uvicorn.Server):  # type: ignore[misc]  # untyped where the extra is not there
    """Says nothing of questions that are cut off at the end: whoever ended the console meant it."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


class Console:
    """A console that listens; `run` serves it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        host: str = "127.0.0.1",
        port: int = 0,
        trace: str | None = None,
        pipelines: Pipelines | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        """`listener` is one that listens at `host` already; without it there is one of its own."""
        self.listener = listener_at(host, port) if listener is None else listener
        token = None if is_loopback(host) else secrets.token_urlsafe(24)
        self.door = Door(host, self.listener.getsockname()[1], token)
        self.cluster = Cluster(settings)
        self.traced = Traced(trace)
        self.tour = Tour()
        self.pipelines = pipelines
        self.server: Any = None

    @property
    def url(self) -> str:
        """Where to open it; the token stands behind `#`, which browsers keep for themselves."""
        host = f"[{self.door.host}]" if ":" in self.door.host else self.door.host
        return f"http://{host}:{self.door.port}" + (f"/#token={self.door.token}" if self.door.token else "")

    def run(self, ready: Callable[[Console], None]) -> None:
        """Serve until the process is told to end."""

        @asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[None]:
            ready(self)
            yield
            await self.tour.close()

        config = uvicorn.Config(
            app(self.cluster, self.door, self.traced, self.tour, self.pipelines, lifespan),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=FAREWELL_SECONDS,
        )
        self.server = QuietServer(config)
        try:
            self.server.run(sockets=[self.listener])
        finally:
            self.cluster.close()
            self.listener.close()

    def stop(self) -> None:
        """Have `run` return; from any thread."""
        self.server.should_exit = True
