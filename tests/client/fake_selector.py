"""A selector without sockets: the test plays the broker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ottla.clock import ManualClock
from ottla.model import Part
from ottla.network.channel import Channel
from ottla.protocol.conversation import decode_request, encode_response
from ottla.protocol.headers import RequestHeader

Handler = Callable[[RequestHeader, Any], Any]
"""Answers a request: a response, (response, version), raw bytes, or None for silence."""


class FakeSelector:
    """Delivers requests to `handler` at the next poll, and its answers at the same one; waiting moves the clock."""

    def __init__(self, clock: ManualClock, handler: Handler) -> None:
        self.clock = clock
        self.handler = handler
        self.refuse = ""
        """The error of failing connections; empty if they succeed."""
        self.requests: list[tuple[Hashable, RequestHeader, Any]] = []
        self.connected: list[Hashable] = []
        self.completed_receives: list[tuple[Hashable, memoryview]] = []
        self.completed_sends: list[Hashable] = []
        self.disconnected: dict[Hashable, str] = {}
        self.waited: list[float | None] = []
        self.plainly: list[Hashable] = []
        """Connections that were to be without TLS though others are with it."""
        self._open: set[Hashable] = set()
        self._connecting: list[Hashable] = []
        self._sent: list[tuple[Hashable, bytes]] = []
        self._ended: dict[Hashable, str] = {}
        self._woken = False
        self._late: list[tuple[Hashable, memoryview]] = []

    def connect(
        self, channel_id: Hashable, host: str, port: int, *, timeout: float | None = None, how: object = None
    ) -> None:
        self._connecting.append(channel_id)
        if how is Channel:
            self.plainly.append(channel_id)

    def send(self, channel_id: Hashable, parts: Sequence[Part]) -> None:
        if channel_id in self._open:
            self._sent.append((channel_id, b"".join(bytes(part) for part in parts)))  # type: ignore[arg-type]

    def end(self, channel_id: Hashable, reason: str = "") -> None:
        """The broker ends the connection."""
        self._ended[channel_id] = reason

    def answer_late(self, channel_id: Hashable, header: RequestHeader, response: Any) -> None:
        """At the next poll the broker answers a request about which `handler` was silent."""
        self._late.append((channel_id, joined(encode_response(response, header.api_version, header.correlation_id))))

    def close(self, channel_id: Hashable) -> None:
        self._open.discard(channel_id)

    def close_all(self) -> None:
        self._open.clear()

    def wakeup(self) -> None:
        self._woken = True

    def poll(self, timeout: float | None) -> None:
        self.waited.append(timeout)
        self.connected, self.completed_sends, self.disconnected = [], [], {}
        self.completed_receives, self._late = self._late, []
        connecting, self._connecting = self._connecting, []
        for channel in connecting:
            if self.refuse:
                self.disconnected[channel] = self.refuse
            else:
                self._open.add(channel)
                self.connected.append(channel)
        self._serve()
        for channel, reason in self._ended.items():
            self._open.discard(channel)
            self.disconnected[channel] = reason
        self._ended = {}
        woken, self._woken = self._woken, False
        if not (woken or self.connected or self.completed_receives or self.completed_sends or self.disconnected):
            self.clock.advance(3600.0 if timeout is None else timeout)

    def _serve(self) -> None:
        sent, self._sent = self._sent, []
        for channel, frame in sent:
            if channel not in self._open:
                continue
            self.completed_sends.append(channel)
            header, request = decode_request(memoryview(frame))
            self.requests.append((channel, header, request))
            answer = self.handler(header, request)
            if isinstance(answer, bytes):
                self.completed_receives.append((channel, memoryview(answer)))
            elif answer is not None:
                response, version = answer if isinstance(answer, tuple) else (answer, header.api_version)
                parts = encode_response(response, version, header.correlation_id)
                self.completed_receives.append((channel, joined(parts)))


def joined(parts: Sequence[Part]) -> memoryview:
    """A frame in one piece."""
    return memoryview(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
