"""The short way of a Produce as nearly all are: from its frame to its answer without a call, a message and a handler.

Only where nobody counts or times requests. What this does for a frame is what `RequestHandler.carry_out` does for a call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ottla.broker.node import BrokerNode
from ottla.broker.plain_produce import PlainProduce
from ottla.broker.requests import request_log
from ottla.broker.requests.connection import Connection
from ottla.model import Part
from ottla.network.memory_budget import MemoryBudget

log = logging.getLogger(__name__)


class PlainWay:
    """Takes frames to a node, and sends its answers."""

    def __init__(
        self,
        node: BrokerNode,
        memory: MemoryBudget,
        send: Callable[[int, Sequence[Part]], None],
        hang_up: Callable[[Connection, str], None],
    ) -> None:
        self._node = node
        self._memory = memory
        self._send = send
        self._hang_up = hang_up
        self.bar(barred=False)

    def bar(self, *, barred: bool) -> None:
        """Let no request pass, or those again that may."""
        self._is_open = not barred and not self._node.config.joins

    def takes(self, connection: Connection, frame: memoryview) -> bool:
        """Whether it was such a frame; then all is done."""
        node = self._node
        if not self._is_open or node.quotas is not None or request_log.wanted():
            return False
        produce = PlainProduce(frame)
        if not produce.read(node, connection):
            return False
        self._memory.handed_out -= len(frame)
        try:
            answer = produce.carry_out(node)
        except Exception:
            log.exception("Produce from %s failed", connection)
            self._hang_up(connection, "its request failed, as logged above")
        else:
            self._send(connection.channel_id, answer)
        return True
