"""Shared by ShareFetch and ShareAcknowledge: acknowledgements, and where the leader of a partition is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.share.share_sessions import SharedPartition
from ottla.coordination.share.events import ShareAcknowledgementBatch
from ottla.coordination.share.record_state import AcknowledgeType
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages import share_fetch as wire

Codes = dict[SharedPartition, int]
"""Partition → the error code of its acknowledgements."""
Batches = Mapping[SharedPartition, Sequence[ShareAcknowledgementBatch]]
LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""The errors that name the present leader."""


def batches_in(
    places: Iterable[tuple[SharedPartition, Sequence[wire.AcknowledgementBatch]]],
) -> dict[SharedPartition, list[ShareAcknowledgementBatch]]:
    """Return the acknowledgements of a request; partitions without any are left out."""
    return {
        place: [
            ShareAcknowledgementBatch(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches
        ]
        for place, batches in places
        if batches
    }


def read_error(node: BrokerNode, call: Call, place: SharedPartition) -> int:
    """Return the error if the client may not read the topic of a partition, else NONE."""
    topic = node.topics.with_id(place.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def acknowledge_all(
    node: BrokerNode,
    call: Call,
    group_id: str,
    member_id: str,
    batches: Batches,
    is_renewal: bool,
    on_done: Callable[[Codes], None],
) -> None:
    """Acknowledge records of several partitions; `on_done` is called with the codes, possibly within this call."""
    codes: Codes = {}
    left = set(batches)
    settings = node.share_settings(group_id)

    def complete(place: SharedPartition, code: int) -> None:
        codes[place] = code
        left.discard(place)
        if not left:
            on_done(codes)

    if not batches:
        on_done(codes)
    for place, some in batches.items():
        code = read_error(node, call, place)
        if not code and not is_renewal and any(AcknowledgeType.RENEW in each.types for each in some):
            code = ErrorCode.INVALID_REQUEST
        if code:
            complete(place, code)
            continue
        led = node.share_partitions.find(group_id, place)
        if isinstance(led, int):
            complete(place, led)
        elif not led.is_ready:
            # Nobody can have acquired records from a state that was not read yet.
            complete(place, led.error or ErrorCode.INVALID_RECORD_STATE)
        else:
            led.acknowledge(member_id, some, settings, partial(complete, place))


def present_leader(node: BrokerNode, place: SharedPartition) -> wire.LeaderIdAndEpoch:
    """Return the leader of a partition for a client that asked another broker."""
    topic = node.topics.with_id(place.topic_id)
    if topic is None or not 0 <= place.partition < len(topic.partitions):
        return wire.LeaderIdAndEpoch(-1, -1)
    found = topic.partitions[place.partition]
    return wire.LeaderIdAndEpoch(found.leader, found.leader_epoch)


def endpoints_of(node: BrokerNode, call: Call, leaders: Iterable[int]) -> list[wire.NodeEndpoint]:
    """Return the addresses of brokers."""
    wanted = set(leaders)
    alive = node.brokers.list_alive(call.connection.listener) if wanted else {}
    return [
        wire.NodeEndpoint(each.node_id, *node.address_of(each, call.connection), each.rack)
        for each in alive.values()
        if each.node_id in wanted
    ]
