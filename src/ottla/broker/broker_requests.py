"""The requests that a broker serves to clients and to other brokers.

A request of a client that changes metadata is forwarded to the active controller (KIP-590); all others are handled
here, by the module of their API in `handlers/`.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.config_changes import is_own, refused_here
from ottla.broker.handlers import FORWARDED, HANDLERS, guarded, is_spoken
from ottla.broker.joined import Joined
from ottla.broker.node import BrokerNode
from ottla.broker.plain_way import PlainWay
from ottla.broker.requests.call import Call, Resumes
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.broker.requests.request_table import Work
from ottla.broker.throttle import Throttle
from ottla.errors import ProtocolError
from ottla.protocol.conversation import decode_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.produce import ProduceRequest


class BrokerRequests:
    """The request table of the broker role."""

    def __init__(
        self,
        node: BrokerNode,
        joined: Joined | None,
        throttle: Throttle,
        plain_way: PlainWay,
    ) -> None:
        self._node = node
        self._joined = joined
        self._throttle = throttle
        self._plain_way = plain_way

    @property
    def has_quotas(self) -> bool:
        return self._node.quotas is not None

    def count_use(self, call: Call, work: Work) -> Work:
        quotas = self._node.quotas
        return work if quotas is None else self._throttle.counted(quotas, call, work)

    @property
    def slow_request_ms(self) -> int:
        return self._node.config.slow_request_ms

    @property
    def has_due(self) -> bool:
        return self._node.waiting.has_due

    def may_be_awaited(self, frame: memoryview) -> bool:
        return len(self._node.waiting) > 0 and len(frame) > 1 and frame[0] == 0 and frame[1] == ProduceRequest.KEY

    def answer_directly(self, connection: Connection, frame: memoryview, now: float) -> bool:
        return self._plain_way.takes(connection, frame, now)

    def begin(self, resumes: Resumes, connection: Connection, frame: memoryview, now: float) -> tuple[Call, Work]:
        header, position = decode_header(frame)
        node, line = self._node, HANDLERS[header.api_key]
        call = Call(resumes, connection, header, now, len(frame))
        if not is_spoken(line.api.name, joins=node.config.joins):
            raise ProtocolError(f"it asks for {line.api.name}, which this broker of a cluster does not serve yet")
        request: Any = None
        if header.api_version in line.versions:
            request = read_request(line.api.request, header.api_version, frame, position)
        elif header.api_key == ApiVersionsRequest.KEY:
            # Answered in any version, since clients learn from it which versions there are (KIP-511).
            call.response_version = 0
        else:
            raise ProtocolError(
                f"it asks for {line.api.name} v{header.api_version}, versions {line.versions} are spoken"
            )
        joined = self._joined
        if joined is not None and line.api.name in FORWARDED and not is_own(request):
            return call, lambda: refused_here(node, call, request) or joined.forward(call, request, frame)
        if node.access is None:
            return call, lambda: line.handle(node, call, request)
        return call, lambda: guarded(node, line, call, request)

    def disconnected(self, connection: Connection) -> None:
        """Do nothing: calls of the connection have been abandoned, which is all that the broker keeps of it."""
