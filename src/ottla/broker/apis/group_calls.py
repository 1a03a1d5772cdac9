"""Calls to the group coordinator, some of which wait for other members.

A handler passes a request to the state machine and receives a reply or `PendingReply`. If pending, the call is kept, which
delays later requests of its connection. Three things end the wait: the reply, an error of the log, or the end of the
connection, of which the machine is notified (`ClientDisconnected`), since a member that cannot be answered must not be waited
for. There are no timeouts here: the machine's alarms lead to a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.state_machines.runtime import PendingReply
from ottla.coordination.groups.events import ClientDisconnected
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.storage.batches.damage import OutOfServiceError

if TYPE_CHECKING:
    from ottla.broker.replica_manager.leadership import Leadership

Submit = Callable[[str, Callable[[int], Any], Callable[[Any], None]], Any]
ORDINARY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.MESSAGE_TOO_LARGE,
)
"""Errors that are sent to clients as they are."""


def submit_to_group(
    node: BrokerNode,
    call: Call,
    group: str,
    event: Callable[[int], Any],
    response: Callable[[Any], Message],
    *,
    nameless: bool = False,
    submit: Submit | None = None,
) -> Message | Outcome:
    """Pass an event to the group coordinator. `response` makes the response of its reply or error, now or later.

    `submit` is a method of the coordinator other than its `submit`. Offsets may be stored under the empty group id, as in Kafka; groups with members have an id.
    """

    def later(reply: Any) -> None:
        call.answer(response(find_code(node, group, reply) if isinstance(reply, KafkaError) else reply))

    def gone() -> None:
        try:
            node.groups.submit(
                group, lambda ticket: ClientDisconnected(ticket, group, reply.ticket, node.clock.wall_ms()), make=False
            )
        except KafkaError as error:
            find_code(node, group, error)

    # Clients of before group ids commit under the empty one.
    if not group and not nameless:
        return response(ErrorCode.INVALID_GROUP_ID)
    try:
        reply = (submit or node.groups.submit)(group, event, later)
    except KafkaError as error:
        return response(find_code(node, group, error))
    if isinstance(reply, PendingReply):
        call.set_abandon_callback(gone)
        return Outcome.LATER
    return response(reply)


def respond_when_committed(
    node: BrokerNode,
    call: Call,
    groups: Iterable[str],
    answer: Callable[[], Message],
    refused: Callable[[int], Message],
) -> Message | Outcome:
    """Return `answer()` once all state of these groups that it reads is committed; `refused` with a code on failure."""
    response = answer()
    open_ = dict(found for group in groups if (found := find_uncommitted(node, group)) is not None)
    if not open_:
        return response
    from ottla.broker.coordinators.commitment import commit_error

    def over() -> None:
        errors = [error for each in open_.items() if (error := commit_error(*each)) is not None]
        code = find_code(node, ", ".join(groups), errors[0]) if errors else ErrorCode.NONE
        call.resume(lambda: refused(code) if code else response)

    call.set_abandon_callback(node.commitment.wait(list(open_.items()), over))
    return Outcome.LATER


def find_uncommitted(node: BrokerNode, group: str) -> tuple[Leadership, int] | None:
    """Return what a response about the group has to wait for, None if the group is not here."""
    try:
        return node.groups.find_uncommitted(group)
    except KafkaError:
        return None


def find_code(node: BrokerNode, group: str, error: KafkaError) -> int:
    """Return the error code for a client; the cause is logged."""
    if error.code in ORDINARY:
        return error.code
    if isinstance(error, OutOfServiceError):
        return error.code  # a code that clients do not retry silently
    node.partitions.complaints.log(f"group {group!r}: {error}")
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
