"""The ISR, sent to the controllers (AlterPartition): one request at a time, with all pending changes.

A partition with a rejected change waits for a moment: while a returning broker is still fenced, the change would be
rejected again after each of its fetches. A request without a response is repeated; if it was applied, the partition
epoch shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from ottla.broker.event_loop.timers import Timers
from ottla.broker.registration.controller_channel import ChannelRequest, ControllerChannel
from ottla.broker.replica_manager.leadership import Leadership
from ottla.clock import Clock
from ottla.coordination.replication.leader import Proposal, ProposalRejection
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)

log = logging.getLogger(__name__)
VERSION = 3
REFUSED_SECONDS = 0.25
LOST_SECONDS = 0.5
OF_MEMBERS = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
AGAIN = frozenset((ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT))


class IsrChanges:
    """The ISR changes of all partitions that this broker leads. Belongs to the loop."""

    def __init__(
        self,
        node_id: int,
        epoch: Callable[[], int],
        channel: ControllerChannel,
        timers: Timers,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._epoch = epoch
        self._channel = channel
        self._timers = timers
        self._clock = clock
        self._wanted: dict[Leadership, Proposal] = {}
        self._sent: dict[Leadership, Proposal] = {}
        self._held: set[Leadership] = set()
        """Partitions with a change that was rejected a moment ago."""

    def propose(self, leadership: Leadership) -> None:
        """Propose a change of the ISR if one is due."""
        if leadership.ended or leadership in self._held:
            return
        proposal = leadership.machine.propose(leadership.brokers, self._clock.monotonic())
        if proposal is not None:
            self._wanted[leadership] = proposal
            self._send()

    def _send(self) -> None:
        if self._sent:
            return
        sent = {each: proposal for each, proposal in self._wanted.items() if is_open(each, proposal)}
        self._wanted = {}
        if sent:
            request = AlterPartitionRequest(self._node_id, self._epoch(), list(group_by_topic(sent.items())))
            self._sent = sent  # only now: a failure to make the request must not block later ones
            self._channel.send_request(ChannelRequest(request, VERSION, AlterPartitionResponse, self._handle_response))

    def _handle_response(self, answer: AlterPartitionResponse | None) -> None:
        sent, self._sent = self._sent, {}
        if answer is None or answer.error_code:
            if answer is not None:
                log.warning("AlterPartition failed error=%s; it is retried", name_of(answer.error_code))
            self._retry(sent, LOST_SECONDS)
            return
        codes = {
            (topic.topic_id, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        for leadership, proposal in sent.items():
            place = leadership.partition.topic_id, leadership.partition.topic_partition.partition
            self._handle_result(leadership, proposal, codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR))
        self._send()

    def _handle_result(self, leadership: Leadership, proposal: Proposal, code: int) -> None:
        if code in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
            log.info("%s: the ISR is %s", leadership.partition, sorted(proposal.in_sync))
        elif code in AGAIN:
            self._retry({leadership: proposal}, LOST_SECONDS)
        else:
            log.info(
                "%s: AlterPartition of the ISR to %s was rejected error=%s",
                leadership.partition,
                sorted(proposal.in_sync),
                name_of(code),
            )
            refusal = ProposalRejection.OF_MEMBERS if code in OF_MEMBERS else ProposalRejection.OF_EPOCHS
            leadership.machine.handle_rejection(proposal, refusal)
            self._held.add(leadership)
            self._timers.schedule(self._clock.monotonic() + REFUSED_SECONDS, lambda: self._release(leadership))

    def _release(self, leadership: Leadership) -> None:
        self._held.discard(leadership)
        self.propose(leadership)

    def _retry(self, lost: dict[Leadership, Proposal], seconds: float) -> None:
        def ring() -> None:
            self._wanted = lost | self._wanted
            self._send()

        self._timers.schedule(self._clock.monotonic() + seconds, ring)


def is_open(leadership: Leadership, proposal: Proposal) -> bool:
    """Return True if the change is still proposed, with the current metadata."""
    return not leadership.ended and leadership.machine.proposal is proposal


def group_by_topic(wanted: Iterable[tuple[Leadership, Proposal]]) -> Iterator[RequestTopicData]:
    """Yield the partitions grouped by topic id."""
    for leadership, proposal in wanted:
        partition = RequestPartitionData(
            leadership.partition.topic_partition.partition,
            proposal.leader_epoch,
            new_isr_with_epochs=[BrokerState(each, proposal.broker_epochs[each]) for each in sorted(proposal.in_sync)],
            partition_epoch=proposal.partition_epoch,
        )
        yield RequestTopicData(leadership.partition.topic_id, [partition])
