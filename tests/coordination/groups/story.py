"""The transcript language for groups.

    join a session=10 range=t           a client without an id (JoinGroup v4: it gets one, and joins again with it)
    join m1 range=t                     a member, by its id; ids are m1, m2, … in the order of assignment
    join a static=i version=9 range=t   a static member
    sync m1 gen=1 m1=A m2=B             the leader's sync; a follower's has no assignments
    beat m1 gen=1 | leave m1 | leave static=i | commit m1 gen=1 t-0=5 | hangup m1 | wait 10 | restart | expire
    promise m1 gen=1 t-0=5 by=7     the offsets of a transaction, here of producer 7
    ended commit by=7               and its end: commit or abort

A story may start with the steps of `prelude`. Below each step, in order: the records in the log, the reason of a rebalance,
every response, and the group if it has changed: its state, generation and members, `*` for the leader, `+` for a member
that waits in a join, `~` for a member that waits in a sync.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ottla.coordination.groups.classic.decision import JOIN, SESSION, SYNC
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState
from ottla.coordination.groups.classic.notes import RebalanceStarted
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.events import (
    ClientDisconnected,
    ExpiryDue,
    GroupDeletionRequested,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    Loaded,
    OffsetDeletionRequested,
    OffsetsCommitted,
    SyncRequested,
    TimerExpired,
    TimerName,
    TopicsDeleted,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.groups.records import Record, decode_record, encode_record
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.machine import Decision
from ottla.coordination.offsets.pending import PendingRecord, TransactionEnded
from ottla.coordination.offsets.records import OffsetRecord
from ottla.errors import ErrorCode, name_of
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordination.transcript import steps_of

WALL_MS = 1_000_000
OWN = {
    "session",
    "rebalance",
    "static",
    "version",
    "gen",
    "type",
    "group",
    "reason",
    "protocol",
    "retention",
    "owned",
    "by",
}
"""Words of the language; every other word with `=` is a protocol, an assignment or an offset."""


class Story:
    """A machine, its time and its log."""

    def __init__(self, **config: Any) -> None:
        self.config = GroupConfig(**config)
        self.machine = Shard(self.config)
        self.now = 0.0
        self.alarms: dict[TimerName, float] = {}
        self.log: list[tuple[bytes, bytes | None]] = []
        self.askers: dict[int, str] = {}
        self.ids = 0
        self.shown = ""
        self.happened: list[str] = []
        self.notes: list[str] = []
        """All that a log would have, from the beginning."""
        self.orphans: set[TimerName] = set()

    def play(self, *texts: str) -> Self:
        """Run the commands, and compare their output."""
        for command, expected in (step for text in texts for step in steps_of(text)):
            self.happened = []
            verb, *words = command.split()
            self.do(
                verb,
                [word for word in words if "=" not in word],
                dict(word.split("=", 1) for word in words if "=" in word),
            )
            assert self.happened == expected, f"{command}\n" + "\n".join(self.happened)
        return self

    def do(self, verb: str, names: list[str], options: dict[str, str]) -> None:
        """One command."""
        VERBS[verb](self, names, options)

    @property
    def group(self) -> ClassicGroup:
        return self.machine.groups["g"]

    @property
    def wall_ms(self) -> int:
        return WALL_MS + round(self.now * 1000)

    def send_event(self, who: str, event: Callable[[int], Event]) -> None:
        """Decide, keep, replay, check, and write down what happened."""
        ticket = len(self.askers) + 1
        self.askers[ticket] = who
        before = dict(self.machine.groups)
        decision = self.machine.decide(event(ticket), self.now)
        assert self.machine.groups == before, "deciding changes nothing"
        self.carry_out(decision)

    def carry_out(self, decision: Decision[Record]) -> None:
        for record in decision.records:
            if isinstance(record, PendingRecord):
                self.happened.append(self.show_record(record))
                self.machine.replay(record)
                continue
            pair = encode_record(record)
            if pair is not None:
                self.log.append(pair)
                self.happened.append(self.show_record(record))
            self.machine.replay(record)
        self.machine.check()
        for alarm in decision.alarms:
            assert isinstance(alarm.name, TimerName)
            if alarm.keep and alarm.name in self.alarms:
                continue
            self.alarms.pop(alarm.name, None)
            if alarm.at is not None:
                self.alarms[alarm.name] = alarm.at
        self.check_alarms()
        self.notes += map(str, decision.notes)
        self.happened += [f"because {note.reason}" for note in decision.notes if isinstance(note, RebalanceStarted)]
        self.happened += [
            f"{self.askers[reply.ticket]}: {self.show_reply(reply.message)}" for reply in decision.replies
        ]
        self.show_group()

    def check_alarms(self) -> None:
        """No timer exists for a removed member or an ended phase; but ids without a join may outlive a deleted group."""
        for name in self.alarms:
            group = self.machine.groups.get(name.group)
            if group is None:
                self.orphans.add(name)
            elif isinstance(group, ClassicGroup) and name.kind in RINGS and name not in self.orphans:
                assert RINGS[name.kind](group, name.member), f"{name} is for nothing"

    def show_group(self) -> None:
        now = self.shown_now()
        text = now or "no group"
        if text != self.shown and (now or self.shown):
            self.happened.append(text)
        self.shown = text

    def shown_now(self) -> str | None:
        """The group, None where there is none."""
        group = self.machine.groups.get("g")
        return shown_group(group) if group else None

    def show_record(self, record: Record) -> str:
        return shown_record(record)

    def show_reply(self, message: Any) -> str:
        return shown_reply(message)

    def subscription(self, topics: str, options: dict[str, str]) -> bytes:
        return subscription(topics)

    def assignment(self, text: str) -> bytes:
        return text.encode()

    def join(self, names: list[str], options: dict[str, str]) -> None:
        (who,) = names
        known = who.startswith("m") or who == "stranger"
        self.ids += not known
        protocols = [
            JoinGroupRequestProtocol(name, self.subscription(topics, options))
            for name, topics in options.items()
            if name not in OWN
        ]
        request = JoinGroupRequest(
            options.get("group", "g"),
            round(float(options.get("session", 10)) * 1000),
            round(float(options.get("rebalance", 60)) * 1000),
            who if known else "",
            options.get("static"),
            options.get("type", "consumer"),
            protocols,
            options.get("reason"),
        )
        new_member_id, version = ("" if known else f"m{self.ids}"), int(options.get("version", 5))
        self.send_event(
            who, lambda ticket: JoinRequested(ticket, request, version, new_member_id, "app", "/h", self.wall_ms)
        )

    def sync(self, names: list[str], options: dict[str, str]) -> None:
        assignments = [
            SyncGroupRequestAssignment(name, self.assignment(part)) for name, part in options.items() if name not in OWN
        ]
        request = SyncGroupRequest(
            "g",
            int(options["gen"]),
            names[0],
            options.get("static"),
            options.get("type"),
            options.get("protocol"),
            assignments,
        )
        self.send_event(names[0], lambda ticket: SyncRequested(ticket, request, self.wall_ms))

    def beat(self, names: list[str], options: dict[str, str]) -> None:
        request = HeartbeatRequest("g", int(options["gen"]), names[0], options.get("static"))
        self.send_event(names[0], lambda ticket: HeartbeatReceived(ticket, request))

    def leave(self, names: list[str], options: dict[str, str]) -> None:
        static = options.get("static")
        members = [MemberIdentity(name, static) for name in names] or [MemberIdentity("", static)]
        request = LeaveGroupRequest("g")
        self.send_event(
            " ".join(names) or str(static), lambda ticket: LeaveRequested(ticket, request, members, self.wall_ms)
        )

    def commit(self, names: list[str], options: dict[str, str]) -> None:
        offsets = {
            partition(name): OffsetAndMetadata(int(offset)) for name, offset in options.items() if name not in OWN
        }
        self.send_event(
            " ".join(names) or "admin",
            lambda ticket: OffsetsCommitted(
                ticket,
                options.get("group", "g"),
                offsets,
                self.wall_ms,
                int(options.get("gen", -1)),
                " ".join(names),
                options.get("static"),
                round(float(options.get("retention", -0.001)) * 1000),
                int(options.get("version", 10)),
            ),
        )

    def promise(self, names: list[str], options: dict[str, str]) -> None:
        offsets = {
            partition(name): OffsetAndMetadata(int(offset)) for name, offset in options.items() if name not in OWN
        }
        member = " ".join(names)
        producer, generation = int(options["by"]), int(options.get("gen", -1))
        version = int(options.get("version", 5))
        self.send_event(
            member or "producer",
            lambda ticket: TransactionalOffsetsCommitted(
                ticket, "g", offsets, producer, 0, self.wall_ms, generation, member, options.get("static"), version
            ),
        )

    def ended(self, names: list[str], options: dict[str, str]) -> None:
        """Replay the marker of a transaction."""
        self.machine.replay(TransactionEnded(int(options["by"]), names == ["commit"]))
        self.machine.check()
        self.happened += [f"{place} at {value.offset}" for place, value in self.machine.offsets.of("g").items()]

    def delete(self, names: list[str], options: dict[str, str]) -> None:
        self.send_event("admin", lambda ticket: GroupDeletionRequested(ticket, names))

    def delete_offsets(self, names: list[str], options: dict[str, str]) -> None:
        self.send_event(
            "admin", lambda ticket: OffsetDeletionRequested(ticket, "g", [partition(name) for name in names])
        )

    def delete_topic(self, names: list[str], options: dict[str, str]) -> None:
        self.send_event("admin", lambda ticket: TopicsDeleted(ticket, names))

    def expire(self, names: list[str], options: dict[str, str]) -> None:
        self.send_event("broker", lambda ticket: ExpiryDue(ticket, self.wall_ms))

    def hangup(self, names: list[str], options: dict[str, str]) -> None:
        member = self.group.members[names[0]]
        waiting = member.join_ticket or member.sync_ticket
        assert waiting, f"{names[0]} does not wait"
        self.send_event(names[0], lambda ticket: ClientDisconnected(ticket, "g", waiting, self.wall_ms))

    def wait(self, names: list[str], options: dict[str, str]) -> None:
        """Advance the clock, and run every timer that expires."""
        end = self.now + float(names[0])
        while self.alarms and min(self.alarms.values()) <= end:
            name = min(self.alarms, key=lambda each: self.alarms[each])
            self.now = max(self.now, self.alarms.pop(name))
            self.send_event("", lambda ticket, name=name: TimerExpired(ticket, name, self.wall_ms))  # type: ignore[misc]
        self.now = end

    def restart(self, names: list[str], options: dict[str, str]) -> None:
        """Restart as after kill -9."""
        self.rebuild()
        self.send_event("", lambda ticket: Loaded(ticket, self.wall_ms))

    def rebuild(self) -> None:
        """Rebuild the machine from its log."""
        self.machine, self.alarms = Shard(self.config), {}
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            self.machine.replay(record)


RINGS: dict[str, Callable[[ClassicGroup, str], bool]] = {
    SESSION: lambda group, member: member in group.members or member in group.pending,
    JOIN: lambda group, _: group.state is ClassicGroupState.PREPARING_REBALANCE,
    SYNC: lambda group, _: bool(group.pending_sync),
}
"""The condition under which a timer of each kind may exist."""

VERBS: dict[str, Callable[[Story, list[str], dict[str, str]], None]] = {
    "join": Story.join,
    "sync": Story.sync,
    "beat": Story.beat,
    "leave": Story.leave,
    "commit": Story.commit,
    "promise": Story.promise,
    "ended": Story.ended,
    "delete": Story.delete,
    "delete-offsets": Story.delete_offsets,
    "delete-topic": Story.delete_topic,
    "expire": Story.expire,
    "hangup": Story.hangup,
    "wait": Story.wait,
    "restart": Story.restart,
}


def subscription(topics: str) -> bytes:
    """The consumer protocol's metadata for topics `t+u`."""
    names = [name.encode() for name in topics.split("+") if name]
    body = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return b"\x00\x00" + len(names).to_bytes(4, "big") + body + b"\xff\xff\xff\xff"


def partition(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def shown_group(group: ClassicGroup) -> str:
    marks = {name: "*" * (name == group.leader) for name in group.members}
    for name, member in group.members.items():
        marks[name] += "+" * bool(member.join_ticket) + "~" * bool(member.sync_ticket)
    return " ".join([f"{group.state} {group.generation}:", *(name + mark for name, mark in marks.items())]).rstrip(":")


def shown_record(record: Record) -> str:
    assert not isinstance(record, GroupInMemory)
    if isinstance(record, PendingRecord):
        return f"promise {shown_record(record.record).removeprefix('keep ')}"
    if isinstance(record, OffsetRecord):
        return f"keep {record.partition} {'forgotten' if record.value is None else record.value.offset}"
    assert isinstance(record, ClassicGroupRecord)
    if record.value is None:
        return f"keep {record.key.group} forgotten"
    parts = [f"{member.member_id}={member.assignment.decode(errors='replace')}" for member in record.value.members]
    return " ".join([f"keep generation {record.value.generation}", *parts])


def shown_reply(message: Any) -> str:
    if isinstance(message, list):
        return " ".join(name_of(code) for code in message)
    if isinstance(message, int):
        return name_of(message) if isinstance(message, ErrorCode) else str(message)
    if message.error_code:
        given = getattr(message, "member_id", "")
        return " ".join([name_of(message.error_code), given]).strip()
    if isinstance(message, SyncGroupResponse):
        return f"has {message.assignment.decode() or 'nothing'}"
    assert isinstance(message, JoinGroupResponse)
    skip = " keep the assignment" * message.skip_assignment
    members = f" of {','.join(member.member_id for member in message.members)}" if message.members else ""
    return f"{message.member_id} in {message.generation_id} by {message.protocol_name} led by {message.leader}{members}{skip}"
