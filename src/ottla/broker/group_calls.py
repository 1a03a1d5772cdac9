"""Calls to the coordinator of groups that may wait for other members.

A handler asks, and what it hears is the machine's reply or `Pending`. In the second case the call is kept, which holds back
what its connection asks after it, and three things may end the wait: the reply, an error of the log, or the client's hanging up, of
which the machine is told (`CallerGone`), as a member that cannot be answered is not to be waited for. Nothing here
times out: the machine's alarms do, and every one of them leads to a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.broker.machines.runtime import Pending
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.events import CallerGone
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.storage.batches.damage import OutOfServiceError

if TYPE_CHECKING:
    from ottla.broker.partitions.leadership import Leadership

ORDINARY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.MESSAGE_TOO_LARGE,
)
"""What is told as it is."""


def ask(
    node: BrokerNode,
    call: Call,
    group: str,
    event: Callable[[int], Any],
    response: Callable[[Any], Message],
    *,
    nameless: bool = False,
) -> Message | Outcome:
    """The machine's reply as a response, now or later; `response` makes it of the reply, or of an error code.

    Offsets may be kept under the empty name, as they always could; members have a group with a name.
    """

    def later(reply: Any) -> None:
        call.answer(response(code_of(node, group, reply) if isinstance(reply, KafkaError) else reply))

    def gone() -> None:
        try:
            node.groups.ask(
                group, lambda ticket: CallerGone(ticket, group, reply.ticket, node.clock.wall_ms()), make=False
            )
        except KafkaError as error:
            code_of(node, group, error)

    # Clients of before group ids committed under the empty name.
    if not group and not nameless:
        return response(ErrorCode.INVALID_GROUP_ID)
    try:
        reply = node.groups.ask(group, event, later)
    except KafkaError as error:
        return response(code_of(node, group, error))
    if isinstance(reply, Pending):
        call.on_abandoned = gone
        return Outcome.LATER
    return response(reply)


def once_committed(
    node: BrokerNode,
    call: Call,
    groups: Iterable[str],
    answer: Callable[[], Message],
    refused: Callable[[int], Message],
) -> Message | Outcome:
    """What `answer` says now of these groups, as soon as all that it can tell of is committed; else `refused` by a code."""
    response = answer()
    open_ = dict(found for group in groups if (found := uncommitted(node, group)) is not None)
    if not open_:
        return response
    from ottla.broker.coordinators.commitment import error_of

    def over() -> None:
        errors = [error for each in open_.items() if (error := error_of(*each)) is not None]
        code = code_of(node, ", ".join(groups), errors[0]) if errors else ErrorCode.NONE
        call.resume(lambda: refused(code) if code else response)

    call.on_abandoned = node.commitment.wait(list(open_.items()), over)
    return Outcome.LATER


def uncommitted(node: BrokerNode, group: str) -> tuple[Leadership, int] | None:
    """What an answer about the group has to wait for, if the group is here."""
    try:
        return node.groups.uncommitted(group)
    except KafkaError:
        return None


def code_of(node: BrokerNode, group: str, error: KafkaError) -> int:
    """What a client is told of an error of the broker's own; the log says why."""
    if error.code in ORDINARY:
        return error.code
    if isinstance(error, OutOfServiceError):
        return error.code  # which no client tries again in silence
    node.partitions.complaints.tell(f"group {group!r}: {error}")
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
