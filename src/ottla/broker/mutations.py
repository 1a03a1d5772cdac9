"""Changes of topics, of which a client may be allowed so many partitions a second (KIP-599)."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call

TOO_MANY = "the limit controller_mutation_rate is reached: try again after the time that the answer tells"


def may_change(node: BrokerNode, call: Call, partitions: int) -> bool:
    """Whether the client may make or delete so many partitions now, which are counted then."""
    return node.quotas is None or node.quotas.may_change(call, partitions, node.clock.monotonic())
