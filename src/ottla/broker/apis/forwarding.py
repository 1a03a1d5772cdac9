"""Requests that the active controller decides (KIP-590), as far as a broker has a part in them.

request ──► not forwarded at all: levels of loggers, what a node without others cannot do
        ──► refused in part: beyond the client's controller mutation quota (KIP-599)
        ──► ControllerChannel ──► the active controller ──► response, with what was refused here
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.protocol.apis import APIS
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.registration.controller_channel import ControllerChannel

CHANGES_OF_TOPICS = frozenset(("CreatePartitions", "CreateTopics", "DeleteTopics"))
CHANGES_OF_CONFIGS = frozenset(("AlterConfigs", "IncrementalAlterConfigs"))
CHANGES_OF_NODES = frozenset(("AddRaftVoter", "RemoveRaftVoter", "UnregisterBroker"))


class Forwarding:
    """Forwards requests of clients. Belongs to the loop."""

    def __init__(self, node: BrokerNode, channel: ControllerChannel) -> None:
        self._node = node
        self._channel = channel

    def forward(self, call: Call, request: Any, frame: memoryview) -> Message | Outcome:
        """Return the response, or have the call answered later."""
        name = APIS[request.KEY].name
        if name in CHANGES_OF_CONFIGS:
            from ottla.broker.apis import config_changes

            if config_changes.is_for_this_broker(request):
                return self._refusal(call, request) or config_changes.change_loggers(self._node, call, request)
            refusal = config_changes.refused_here(self._node, call, request)
            if refusal is not None:
                return refusal
        elif name in CHANGES_OF_NODES and self._node.is_alone:
            from ottla.broker.apis import refused_requests

            return self._refusal(call, request) or refused_requests.reject_request(self._node, request)
        elif name in CHANGES_OF_TOPICS:
            return self._forward_change_of_topics(call, request, frame)
        return self._channel.forward(call, request, frame)

    def _refusal(self, call: Call, request: Any) -> Message | None:
        """Return the error of a client that is not authorized for a request that the controller does not see."""
        if self._node.access is None:
            return None
        from ottla.broker.apis import permissions

        return permissions.find_refusal(self._node.access, call, request)

    def _forward_change_of_topics(self, call: Call, request: Any, frame: memoryview) -> Message | Outcome:
        from ottla.broker.apis import topic_changes

        refusal = topic_changes.reject_above_quota(self._node, request)
        if refusal is not None:
            return refusal
        if self._node.quotas is None or getattr(request, "validate_only", False):
            return self._channel.forward(call, request, frame)
        allowed, finish = topic_changes.apply_quota(self._node, call, request)
        return self._channel.forward(call, allowed, frame if allowed is request else None, finish)
