"""ShareFetch: acquire records for a member of a share group, and acknowledge earlier ones (KIP-932).

    session ──► acknowledgements persisted ──► records available? ──┬─► acquired ──► response
                                                     ▲              └─► wait for an append, a release, an expired lock
                                                     └─────────────────────────────┘

The partitions are those of the share session; the request names the changes. A request whose acknowledgements failed, or that closes the
session or renews locks, does not wait for records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from ottla.broker.apis.share_calls import (
    LEADER_ERRORS,
    Codes,
    acknowledge_all,
    batches_in,
    endpoints_of,
    present_leader,
    read_error,
)
from ottla.broker.apis.share_state_calls import group_fault
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.waiting_fetch import Awaited, WaitingFetch
from ottla.broker.share.led_share_partition import LedSharePartition
from ottla.broker.share.share_group_settings import ShareGroupSettings
from ottla.broker.share.share_log_reader import LogRecords
from ottla.broker.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition, ShareSession
from ottla.coordination.share.events import AcquiredRange, AcquireMode
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation
from ottla.protocol.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.protocol.schema import Message

MOST_ATTEMPTS = 100
"""The number of times that a fetch reads on after records of which none can be delivered."""


class PendingFetch(Struct, eq=False):
    """A ShareFetch without a response yet."""

    node: BrokerNode
    call: Call
    request: ShareFetchRequest
    group_id: str
    member_id: str
    places: Sequence[SharedPartition]
    """The partitions to read, in order."""
    mode: AcquireMode
    codes: Codes = field(default_factory=dict)
    """The error codes of acknowledgements."""
    results: dict[SharedPartition, PartitionData] = field(default_factory=dict)


def handle(node: BrokerNode, call: Call, request: ShareFetchRequest) -> Message | Outcome:
    """Acknowledge records, then acquire others."""
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    fault = group_fault(node, call, group_id, Operation.READ)
    if fault is not None:
        return refused(*fault)
    named = {
        SharedPartition(topic.topic_id, each.partition_index): each.acknowledgement_batches
        for topic in request.topics
        for each in topic.partitions
    }
    batches = batches_in(named.items())
    try:
        mode = acquire_mode(request)
        session = find_session(node, call, request, group_id, member_id, list(named), has_batches=bool(batches))
    except KafkaError as error:
        return refused(error.code, error.message)
    fetches = epoch != FINAL_EPOCH and not request.is_renew_ack
    places = session.rotate() if fetches else []
    pending = PendingFetch(node, call, request, group_id, member_id, places, mode)
    outcomes: list[Message | Outcome] = []
    is_waiting = False

    def proceed(codes: Codes) -> Message | Outcome:
        pending.codes = codes
        if places and node.waiting.has_due:
            # The acknowledgements have made records available for members that waited, and they come first. Otherwise a
            # member that acknowledges and fetches in one request would take all records.
            fetch = WaitingFetch([], 1, partial(again, pending), call)
            node.waiting.add(fetch, math.inf)
            node.waiting.recheck_soon(fetch)  # in this turn of the loop
            return Outcome.LATER
        return read_or_wait(pending)

    def acknowledged(codes: Codes) -> None:
        if epoch == FINAL_EPOCH:
            node.share_partitions.sessions.close(group_id, member_id)
            node.share_partitions.release(group_id, member_id, list(session.partitions), lambda place, code: None)
        if is_waiting:
            call.resume(lambda: proceed(codes))
        else:
            outcomes.append(proceed(codes))

    acknowledge_all(node, call, group_id, member_id, batches, request.is_renew_ack, acknowledged)
    if outcomes:
        return outcomes[0]
    is_waiting = True
    return Outcome.LATER


def acquire_mode(request: ShareFetchRequest) -> AcquireMode:
    """Return the mode of a request. Raise KafkaError for an unknown one, or if a request that renews locks wants records."""
    if not request.member_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the member id is empty")
    wanted = request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records
    if request.is_renew_ack and any(wanted):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a request that renews acquisition locks fetches nothing")
    try:
        return AcquireMode(request.share_acquire_mode)
    except ValueError:
        text = f"there is no acquire mode {request.share_acquire_mode}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text) from None


def find_session(
    node: BrokerNode,
    call: Call,
    request: ShareFetchRequest,
    group_id: str,
    member_id: str,
    named: list[SharedPartition],
    *,
    has_batches: bool,
) -> ShareSession:
    """Open or continue the share session of a request. Raise KafkaError."""
    sessions, epoch = node.share_partitions.sessions, request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        if has_batches:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a share session has no acknowledgements")
        return sessions.open(group_id, member_id, call.connection, named)
    if epoch == FINAL_EPOCH:
        return sessions.find(group_id, member_id)
    session = sessions.advance(group_id, member_id, epoch)
    forgotten = [
        SharedPartition(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    session.update(named, forgotten)
    return session


def read_or_wait(pending: PendingFetch) -> Message | Outcome:
    """Return the response if there are records or errors, or the wait is over; otherwise wait, and be called again."""
    node, request = pending.node, pending.request
    deadline = pending.call.received + request.max_wait_ms / 1000
    is_over = (
        not pending.places or node.waiting.closed or node.clock.monotonic() >= deadline or any(pending.codes.values())
    )
    led = find_led(pending)
    for _ in range(MOST_ATTEMPTS):
        if not acquire_all(pending, led, is_over=is_over):
            break
    if pending.results or is_over:
        return build_response(pending)
    awaited: list[Awaited] = []
    for each in led.values():
        awaited += [each] if not each.is_ready else [each, each.partition]
    fetch = WaitingFetch(awaited, max(1, request.min_bytes), partial(again, pending), pending.call)
    node.waiting.add(fetch, deadline)
    return Outcome.LATER


def again(pending: PendingFetch) -> None:
    pending.call.resume(lambda: read_or_wait(pending))


def find_led(pending: PendingFetch) -> dict[SharedPartition, LedSharePartition]:
    """Return the partitions that this broker leads. The others get their errors."""
    found: dict[SharedPartition, LedSharePartition] = {}
    for place in pending.places:
        code = read_error(pending.node, pending.call, place)
        led = code or pending.node.share_partitions.find(pending.group_id, place)
        if isinstance(led, int):
            fail(pending, place, led)
        elif led.has_ended:
            fail(pending, place, led.error)
        else:
            found[place] = led
    return found


def acquire_all(pending: PendingFetch, led: dict[SharedPartition, LedSharePartition], *, is_over: bool) -> bool:
    """Acquire records from partitions that have some. Return True if none could be delivered, and there may be others."""
    request, node = pending.request, pending.node
    settings = node.share_settings(pending.group_id)
    ready = {place: each for place, each in led.items() if each.is_ready and each.may_acquire}
    if not ready:
        return False
    limit = min(request.max_bytes, node.config.fetch_max_bytes)
    if node.quotas is not None:
        limit = node.quotas.most_bytes(pending.call, limit)
    max_bytes = max(1, limit // len(ready))
    left, has_moved = request.max_records, False
    reads = read_all(pending, ready, max_bytes, settings)
    waiting: list[tuple[SharedPartition, LedSharePartition, LogRecords]] = []
    size_bytes = 0
    for place, each, records in reads:
        size_bytes += records.size_bytes
        waiting.append((place, each, records))
        if not is_over and size_bytes < request.min_bytes:
            continue  # nothing is acquired until there are enough bytes
        while waiting and left > 0:
            place, each, records = waiting.pop(0)
            offset = each.next_fetch_offset
            acquired = each.acquire(pending.member_id, records, left, pending.mode, request.batch_size)
            if acquired:
                left -= sum(some.last_offset - some.first_offset + 1 for some in acquired)
                pending.results[place] = partition_data(place, acquired, records)
            has_moved = has_moved or each.next_fetch_offset != offset
        if left <= 0:
            break
    return has_moved and not pending.results


def read_all(
    pending: PendingFetch,
    ready: Mapping[SharedPartition, LedSharePartition],
    max_bytes: int,
    settings: ShareGroupSettings,
) -> Iterator[tuple[SharedPartition, LedSharePartition, LogRecords]]:
    """Yield the records of each partition, which are read only when the caller needs them."""
    for place, each in ready.items():
        try:
            records = each.read(max_bytes, max(1, pending.request.max_records), settings)
        except KafkaError as error:
            fail(pending, place, error.code)
            continue
        if records is not None:
            yield place, each, records


def partition_data(place: SharedPartition, acquired: Sequence[AcquiredRange], records: LogRecords) -> PartitionData:
    ranges = [AcquiredRecords(*each) for each in acquired]
    return PartitionData(place.partition, records=records.select(acquired), acquired_records=ranges)


def fail(pending: PendingFetch, place: SharedPartition, code: int) -> None:
    """Set the error of a partition."""
    pending.results[place] = PartitionData(place.partition, code)


def build_response(pending: PendingFetch) -> ShareFetchResponse:
    node, call = pending.node, pending.call
    for place, code in pending.codes.items():
        data = pending.results.setdefault(place, PartitionData(place.partition))
        data.acknowledge_error_code = code
    topics: dict[object, ShareFetchableTopicResponse] = {}
    leaders: list[int] = []
    for place, data in pending.results.items():
        if data.error_code in LEADER_ERRORS or data.acknowledge_error_code in LEADER_ERRORS:
            data.current_leader = present_leader(node, place)
            leaders.append(data.current_leader.leader_id)
        topic = topics.setdefault(place.topic_id, ShareFetchableTopicResponse(place.topic_id, []))
        topic.partitions.append(data)  # type: ignore[attr-defined]
    duration_ms = round(node.share_settings(pending.group_id).limits.lock_duration * 1000)
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=duration_ms,
        responses=list(topics.values()),
        node_endpoints=endpoints_of(node, call, leaders),
    )


def refused(code: int, text: str | None) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=code, error_message=text)
