"""Who is in sync, told to the controllers (AlterPartition): one request under way, with all that is to be told by then.

A partition whose wish was refused for whom it names says nothing for a moment: else, while a broker that comes back is still fenced,
it would be refused again with each of its fetches. An answer that was lost is asked for again; if it was granted, the epoch tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from ottla.broker.controllers.controller_channel import ControllerChannel, Errand
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.replication.leader import Proposal, Refusal
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
    """Of all partitions that this broker leads. Belongs to the loop."""

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
        """Those that were refused a moment ago."""

    def look(self, leadership: Leadership) -> None:
        """Ask for another in-sync set, if there should be one."""
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
            request = AlterPartitionRequest(self._node_id, self._epoch(), list(topics_of(sent.items())))
            self._sent = sent  # only now: what keeps the request from being made must not keep later ones
            self._channel.ask(Errand(request, VERSION, AlterPartitionResponse, self._answered))

    def _answered(self, answer: AlterPartitionResponse | None) -> None:
        sent, self._sent = self._sent, {}
        if answer is None or answer.error_code:
            if answer is not None:
                log.warning("the controllers do not hear who is in sync: %s", name_of(answer.error_code))
            self._again(sent, LOST_SECONDS)
            return
        codes = {
            (topic.topic_id, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        for leadership, proposal in sent.items():
            place = leadership.partition.topic_id, leadership.partition.topic_partition.partition
            self._settle(leadership, proposal, codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR))
        self._send()

    def _settle(self, leadership: Leadership, proposal: Proposal, code: int) -> None:
        if code in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
            log.info("%s: in sync are %s", leadership.partition, sorted(proposal.in_sync))
        elif code in AGAIN:
            self._again({leadership: proposal}, LOST_SECONDS)
        else:
            log.info("%s: %s as in sync: %s", leadership.partition, sorted(proposal.in_sync), name_of(code))
            refusal = Refusal.OF_MEMBERS if code in OF_MEMBERS else Refusal.OF_EPOCHS
            leadership.machine.refused(proposal, refusal)
            self._held.add(leadership)
            self._timers.at(self._clock.monotonic() + REFUSED_SECONDS, lambda: self._release(leadership))

    def _release(self, leadership: Leadership) -> None:
        self._held.discard(leadership)
        self.look(leadership)

    def _again(self, lost: dict[Leadership, Proposal], seconds: float) -> None:
        def ring() -> None:
            self._wanted = lost | self._wanted
            self._send()

        self._timers.at(self._clock.monotonic() + seconds, ring)


def is_open(leadership: Leadership, proposal: Proposal) -> bool:
    """Whether it is still what the leader wants, by what the metadata say now."""
    return not leadership.ended and leadership.machine.proposal is proposal


def topics_of(wanted: Iterable[tuple[Leadership, Proposal]]) -> Iterator[RequestTopicData]:
    """Each partition under its topic's id."""
    for leadership, proposal in wanted:
        partition = RequestPartitionData(
            leadership.partition.topic_partition.partition,
            proposal.leader_epoch,
            new_isr_with_epochs=[BrokerState(each, proposal.broker_epochs[each]) for each in sorted(proposal.in_sync)],
            partition_epoch=proposal.partition_epoch,
        )
        yield RequestTopicData(leadership.partition.topic_id, [partition])
