"""The requests that a broker serves to clients and to other brokers.

A request of a client that changes metadata is forwarded to the active controller (KIP-590); all others are handled
here, by the module of their API in this folder (`handlers.py`).
"""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.fast_path import FastPath
from ottla.broker.apis.forwarding import Forwarding
from ottla.broker.apis.handlers import FORWARDED, HANDLERS, handle_authorized
from ottla.broker.network_server.call import Call, Resumes
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.network_server.request_table import Work
from ottla.broker.network_server.throttle import Throttle
from ottla.broker.node import BrokerNode
from ottla.errors import ProtocolError
from ottla.protocol.conversation import decode_header
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.produce import ProduceRequest


class BrokerRequests:
    """The request table of the broker role."""

    def __init__(
        self,
        node: BrokerNode,
        forwarding: Forwarding,
        throttle: Throttle,
        fast_path: FastPath,
    ) -> None:
        self._node = node
        self._forwarding = forwarding
        self._throttle = throttle
        self._fast_path = fast_path

    @property
    def has_quotas(self) -> bool:
        return self._node.quotas is not None

    def count_use(self, call: Call, work: Work) -> Work:
        quotas = self._node.quotas
        return work if quotas is None else self._throttle.count_usage(quotas, call, work)

    @property
    def slow_request_ms(self) -> int:
        return self._node.config.slow_request_ms

    @property
    def has_due(self) -> bool:
        return self._node.waiting.has_due

    def may_be_awaited(self, frame: memoryview) -> bool:
        return len(self._node.waiting) > 0 and len(frame) > 1 and frame[0] == 0 and frame[1] == ProduceRequest.KEY

    def answer_directly(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        return self._fast_path.takes(connection, frame, now, arrived)

    def begin(self, resumes: Resumes, connection: Connection, frame: memoryview, now: float) -> tuple[Call, Work]:
        header, position = decode_header(frame)
        node, line = self._node, HANDLERS[header.api_key]
        call = Call(resumes, connection, header, now, len(frame))
        request: Any = None
        if header.api_version in line.versions:
            request = read_request(line.api.request, header.api_version, frame, position)
        elif header.api_key == ApiVersionsRequest.KEY:
            # Answered in any version, since clients learn from it which versions there are (KIP-511).
            call.response_version = 0
        else:
            raise ProtocolError(
                f"it sent {line.api.name} v{header.api_version}, and versions {line.versions} are supported"
            )
        if line.api.name in FORWARDED:
            return call, lambda: self._forwarding.forward(call, request, frame)
        if node.access is None:
            return call, lambda: line.handle(node, call, request)
        return call, lambda: handle_authorized(node, line, call, request)

    def handle_disconnect(self, connection: Connection) -> None:
        """Close the share sessions of the connection. Its calls have been abandoned."""
        self._node.disconnected(connection)
