"""A broker of one group: the real machine, kept alive by a list of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.records import ClassicGroupRecord
from ottla.coordination.groups.classic.responses import join_error_response, sync_error_response
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat, TopicsChanged
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord, GroupEpochKey
from ottla.coordination.groups.events import (
    ClientDisconnected,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    Loaded,
    OffsetsCommitted,
    SyncRequested,
    TimerExpired,
    TimerName,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.groups.records import Record, decode_record, encode_record, producer_of, within_transaction
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.machine import Decision
from ottla.coordination.offsets.pending import TransactionEnded
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from tests.simulation.network import Connection
from tests.simulation.world import World

GROUP = "g"
COMMIT_VERSION = 9
NOTHING = Assignment()
Answer = Callable[[Any], None]
Batch = tuple[tuple[int, int] | None, list[tuple[bytes, bytes | None]]] | tuple[int, bool]
"""Records of a producer or without one, or the end of a producer's transaction."""


class GroupBroker:
    """The coordinator, its log, and its pending requests."""

    def __init__(self, world: World, config: GroupConfig, join_version: int) -> None:
        self.world = world
        self.config = config
        self.join_version = join_version
        self.down = False
        self.log: list[Batch] = []
        self.machine = Shard(config)
        self.image = TopicImage()
        self.life = 0
        self.kept_generation = 0
        """The newest generation in the log."""
        self.count = 0
        """The number of times that generations restarted."""
        self.committed: dict[TopicPartition, int] = {}
        """The committed offsets that the broker's clients may rely on."""
        self.rewound: dict[TopicPartition, int] = {}
        """To where members went back by themselves."""
        self.owned_since: dict[TopicPartition, int] = {}
        """The generation of the last member that took a partition over."""
        self.open: dict[int, None] = {}
        """Producers with an open transaction."""
        self.connections: dict[Connection, None] = {}
        self._waiting: dict[int, Answer] = {}
        self._tickets = 0
        self._ids = 0
        self._alarms: dict[TimerName, float] = {}

    @property
    def group(self) -> ClassicGroup | ConsumerGroup | None:
        return self.machine.groups.get(GROUP) or self.machine.consumers.groups.get(GROUP)

    # Events from outside.

    def handle(self, message: Any, client: str, answer: Answer, connection: Connection | None) -> None:
        """Handle a request; it is answered now, later or, if the broker crashes, never."""
        if not self.down:
            HANDLERS[type(message)](self, message, client, answer, connection)

    def see_topics(self, image: TopicImage) -> None:
        """The cluster's topics have changed."""
        self.image = image
        if not self.down:
            self.submit(lambda ticket: TopicsChanged(ticket, image))

    def caller_gone(self, ticket: int) -> None:
        """Handle the disconnect of a client with a pending request."""
        if ticket in self._waiting:
            del self._waiting[ticket]
            self.submit(lambda own: ClientDisconnected(own, GROUP, ticket, self.world.wall_ms()))

    def crash(self, lost_batches: int, downtime: float) -> None:
        """Crash, perhaps with batches that were never flushed, and restart."""
        self.world.say("broker", f"crashes, loses {lost_batches} batches, is gone for {downtime:.3f}")
        self.down = True
        self._waiting.clear()
        self._alarms.clear()
        self.life += 1
        if lost_batches:
            del self.log[-lost_batches:]
            self._forget_what_was_lost()
        for connection in self.connections:
            connection.gone = True
            self.world.after(self.world.chance.random(), lambda each=connection: each.break_off("the broker died"))  # type: ignore[misc]
        self.connections.clear()
        self.world.after(downtime, self._come_back)

    def fail_append(self) -> None:
        """Fail an append to the log: the state is read again, and every pending request gets an error."""
        self.world.say("broker", "reads its log again")
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self._alarms.clear()
        self.life += 1
        self._load()
        for answer in waiting:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def promise(self, event: Callable[[int], TransactionalOffsetsCommitted], producer_id: int) -> int:
        """Keep offsets within a producer's transaction; an error code."""
        codes: list[int] = []
        if self.down:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.submit(event, codes.append)
        if not codes[0]:
            self.open[producer_id] = None
        return codes[0]

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """A marker arrives."""
        self.open.pop(producer_id, None)
        self.world.say("broker", f"transaction of {producer_id} ends, commit={commit}")
        self.log.append((producer_id, commit))
        self.machine.replay(TransactionEnded(producer_id, commit))
        self._look_at_offsets()

    # Running the machine, as `Runtime` does.

    def submit(
        self, event: Callable[[int], Event], answer: Answer | None = None, connection: Connection | None = None
    ) -> None:
        """Decide, keep, replay, answer."""
        self._tickets += 1
        ticket = self._tickets
        if answer is not None:
            self._waiting[ticket] = answer
            if connection is not None:
                connection.held = ticket
        decision = self.machine.decide(event(ticket), self.world.now)
        self._keep(decision)
        for record in decision.records:
            self.machine.replay(record)
        self.machine.check()
        self._set_alarms(decision)
        for note in decision.notes:
            self.world.say("broker", note)
        self._look_at_offsets()
        for reply in decision.replies:
            waiting = self._waiting.pop(reply.ticket, None)
            if waiting is not None:
                waiting(reply.message)

    def _keep(self, decision: Decision[Record]) -> None:
        pairs = []
        for record in decision.records:
            pair = encode_record(record)
            if pair is None:
                continue
            pairs.append(pair)
            if self._is_end_of_epochs(record):
                self.kept_generation, self.count = 0, self.count + 1
                self.owned_since.clear()
            if isinstance(record, ClassicGroupRecord) and record.value is not None:
                assert record.value.generation >= self.kept_generation, "a generation never comes again"
                self.kept_generation = record.value.generation
        if pairs:
            self.log.append((producer_of(decision.records[0]), pairs))

    def _is_end_of_epochs(self, record: Record) -> bool:
        """True if an empty group is deleted: a new group of its name counts epochs from the start."""
        group: ClassicGroup | ConsumerGroup | None = None
        if isinstance(record, ConsumerGroupRecord) and isinstance(record.key, GroupEpochKey):
            group = self.machine.consumers.groups.get(GROUP)
        elif isinstance(record, ClassicGroupRecord):
            group = self.machine.groups.get(GROUP)
        return isinstance(record, ConsumerGroupRecord | ClassicGroupRecord) and record.value is None and is_empty(group)

    def _set_alarms(self, decision: Decision[Record]) -> None:
        for alarm in decision.alarms:
            name: Any = alarm.name
            if alarm.at is None:
                self._alarms.pop(name, None)
                continue
            self._alarms[name] = alarm.at
            self.world.at(alarm.at, lambda name=name, at=alarm.at, life=self.life: self._ring(name, at, life))  # type: ignore[misc]

    def _ring(self, name: TimerName, at: float, life: int) -> None:
        if life == self.life and self._alarms.get(name) == at:
            del self._alarms[name]
            self.submit(lambda ticket: TimerExpired(ticket, name, self.world.wall_ms()))

    def _come_back(self) -> None:
        self.down = False
        self._load()

    def _load(self) -> None:
        self.machine = Shard(self.config)
        self.kept_generation = 0
        for record in records_of(self.log):
            if self._is_end_of_epochs(record):
                self.kept_generation = 0
            self.machine.replay(record)
            if isinstance(record, ClassicGroupRecord) and record.value is not None:
                self.kept_generation = record.value.generation
        self.machine.check()
        self.world.say("broker", f"is back with generation {self.kept_generation}")
        self.submit(lambda ticket: TopicsChanged(ticket, self.image))
        self.submit(lambda ticket: Loaded(ticket, self.world.wall_ms()))

    def _look_at_offsets(self) -> None:
        """Check that committed offsets never decrease, except for intended rewinds."""
        for partition, value in self.machine.offsets.of(GROUP).items():
            before = self.committed.get(partition, 0)
            if value.offset != before:
                reported = value.offset >= self.rewound.get(partition, before)
                assert value.offset > before or reported, f"{partition} went back from {before} to {value.offset}"
                self.committed[partition] = value.offset

    def _forget_what_was_lost(self) -> None:
        """Drop the state that a crash lost although it had been acknowledged."""
        machine = Shard(self.config)
        for record in records_of(self.log):
            machine.replay(record)
        offsets = machine.offsets.of(GROUP)
        self.committed = {partition: value.offset for partition, value in offsets.items()}
        self.owned_since.clear()

    # The requests.

    def _find(self, message: Any, client: str, answer: Answer, connection: Connection | None) -> None:
        answer(FindCoordinatorResponse(node_id=0, host="broker", port=9092))

    def _join(self, request: JoinGroupRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        self._ids += 1
        fresh = f"{request.group_instance_id or client}-{self._ids}"
        self.world.say(client, f"JoinGroup {request.member_id or 'anew'} because of {request.reason}")

        def respond(reply: Any) -> None:
            reported = join_error_response(reply, request.member_id) if isinstance(reply, int) else reply
            self.world.say(
                client, f"joined: {reported.member_id} in {reported.generation_id}, error {reported.error_code}"
            )
            answer(reported)

        version = self.join_version
        self.submit(
            lambda ticket: JoinRequested(ticket, request, version, fresh, client, "/h", self.world.wall_ms()),
            respond,
            connection,
        )

    def _sync(self, request: SyncGroupRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        self.world.say(client, f"SyncGroup {request.member_id} in {request.generation_id}")

        def respond(reply: Any) -> None:
            reported = sync_error_response(reply) if isinstance(reply, int) else reply
            self.world.say(
                client, f"synced: {request.member_id} in {request.generation_id}, error {reported.error_code}"
            )
            answer(reported)

        self.submit(lambda ticket: SyncRequested(ticket, request, self.world.wall_ms()), respond, connection)

    def _beat(self, request: HeartbeatRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        def respond(code: int) -> None:
            if code:
                self.world.say(client, f"heartbeat of {request.member_id} in {request.generation_id}: error {code}")
            answer(HeartbeatResponse(error_code=code))

        self.submit(lambda ticket: HeartbeatReceived(ticket, request), respond, connection)

    def _leave(self, request: LeaveGroupRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        self.world.say(client, f"LeaveGroup {request.members[0].member_id}")

        def respond(reply: Any) -> None:
            if isinstance(reply, int):
                answer(LeaveGroupResponse(error_code=reply))
            else:
                answer(LeaveGroupResponse(members=[MemberResponse(error_code=code) for code in reply]))

        self.submit(
            lambda ticket: LeaveRequested(ticket, request, request.members, self.world.wall_ms()), respond, connection
        )

    def _commit(self, request: OffsetCommitRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        offsets = {
            TopicPartition(topic.name, part.partition_index): OffsetAndMetadata(part.committed_offset)
            for topic in request.topics
            for part in topic.partitions
        }
        generation = request.generation_id_or_member_epoch

        def respond(code: int) -> None:
            reported = {str(partition): committed.offset for partition, committed in offsets.items()}
            self.world.say(client, f"commit in {generation}: {reported}, error {code}")
            if not code:
                self.check_place(offsets, generation)
            parts = [
                OffsetCommitResponseTopic(
                    topic.name,
                    partitions=[OffsetCommitResponsePartition(p.partition_index, code) for p in topic.partitions],
                )
                for topic in request.topics
            ]
            answer(OffsetCommitResponse(topics=parts))

        self.submit(
            lambda ticket: OffsetsCommitted(
                ticket,
                GROUP,
                offsets,
                self.world.wall_ms(),
                generation,
                request.member_id,
                request.group_instance_id,
                version=COMMIT_VERSION,
            ),
            respond,
            connection,
        )

    def check_place(self, offsets: Any, generation: int) -> None:
        """Check that no member commits for a partition that was taken over in a later generation."""
        for partition in offsets:
            since = self.owned_since.get(partition, 0)
            assert generation >= since, (
                f"{partition} is committed in generation {generation}, and was taken over in {since}"
            )

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: str, answer: Answer, connection: Connection | None
    ) -> None:
        """Handle a request of the newer protocol."""

        def respond(reply: Any) -> None:
            reported = ConsumerGroupHeartbeatResponse(error_code=reply) if isinstance(reply, int) else reply
            if reported.error_code or reported.assignment is not None:
                given = [
                    (each.topic_id.int, each.partitions) for each in (reported.assignment or NOTHING).topic_partitions
                ]
                error = f"error {reported.error_code} {reported.error_message}" if reported.error_code else ""
                self.world.say(client, f"heartbeat of {request.member_id}: {reported.member_epoch}, {given} {error}")
            answer(reported)

        if request.topic_partitions is not None or request.member_epoch <= 0:
            has = [(each.topic_id.int, each.partitions) for each in request.topic_partitions or ()]
            self.world.say(client, f"heartbeat of {request.member_id} in {request.member_epoch}: has {has}")
        fresh, wall_ms = f"unused-{client}", self.world.wall_ms()
        self.submit(
            lambda ticket: ConsumerHeartbeat(ticket, request, 1, fresh, client, "/h", wall_ms), respond, connection
        )

    def _fetch(self, request: OffsetFetchRequest, client: str, answer: Answer, connection: Connection | None) -> None:
        pending, found = self.machine.pending, self.machine.offsets.of(GROUP)
        topics = []
        asked = request.groups[0] if request.groups else None
        error = self.machine.fetch_error(GROUP, asked.member_id, asked.member_epoch) if asked else 0
        if error:
            self.world.say(client, f"fetches offsets as {asked}: error {error}")
            answer(OffsetFetchResponse(groups=[OffsetFetchResponseGroup(GROUP, error_code=error)]))
            return
        for topic in (asked or request).topics or ():
            parts = []
            for index in topic.partition_indexes:
                place = TopicPartition(topic.name, index)
                if request.require_stable and pending.holds(GROUP, place):
                    parts.append(OffsetFetchResponsePartition(index, -1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                else:
                    parts.append(OffsetFetchResponsePartition(index, found[place].offset if place in found else -1))
            topics.append(OffsetFetchResponseTopic(topic.name, parts))
        if asked:
            answer(OffsetFetchResponse(groups=[OffsetFetchResponseGroup(GROUP, topics)]))  # type: ignore[arg-type]
        else:
            answer(OffsetFetchResponse(topics=topics))


HANDLERS: dict[type, Callable[[GroupBroker, Any, str, Answer, Connection | None], None]] = {
    FindCoordinatorRequest: GroupBroker._find,
    JoinGroupRequest: GroupBroker._join,
    SyncGroupRequest: GroupBroker._sync,
    HeartbeatRequest: GroupBroker._beat,
    LeaveGroupRequest: GroupBroker._leave,
    OffsetCommitRequest: GroupBroker._commit,
    OffsetFetchRequest: GroupBroker._fetch,
    ConsumerGroupHeartbeatRequest: GroupBroker._heartbeat,
}


def is_empty(group: ClassicGroup | ConsumerGroup | None) -> bool:
    return group is not None and not group.members


def records_of(log: list[Batch]) -> list[Record]:
    """Return the records of a log, decoded from its bytes."""
    records: list[Record] = []
    for producer, content in log:
        if isinstance(content, bool):
            assert isinstance(producer, int)
            records.append(TransactionEnded(producer, content))
            continue
        for key, value in content:
            record = decode_record(key, value)
            assert record is not None
            if producer is not None:
                assert isinstance(producer, tuple)
                record = within_transaction(record, *producer)
            records.append(record)
    return records
