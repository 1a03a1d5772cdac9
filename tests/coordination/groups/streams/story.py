"""Streams groups at their coordinator, as transcripts.

    topics in=2 rep=2             the topics, with their numbers of partitions
    join a one process=p | alive a | bye a | pause a instance=i
                                  heartbeats; alive reports the tasks that the member was assigned last, `keeps` all it ever had,
                                  `owned=-` omits them, `epoch=3` is an epoch other than its own
    quiet a | slow a | due        the session or the rebalance timeout of a, or the delay of the first assignment, has expired
    clock 1500                    the wall clock, in ms
    commit a in-0 epoch=2         offsets of a partition

Below each command are the response (its epoch and, if they are sent, its tasks), its statuses, the internal topics to create, and the group if it
has changed: its state, epoch/assignment epoch, and each member with its epoch and tasks. `s` precedes standby tasks, `-` tasks to
revoke. After each step the groups are rebuilt from the log and must be the same.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.coordination.groups.config import StreamsGroupConfig
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.events import OffsetsCommitted, TimerExpired, TimerName, TransactionalOffsetsCommitted
from ottla.coordination.groups.streams.events import HeartbeatResult, StreamsHeartbeat
from ottla.coordination.groups.streams.group import StreamsGroup, Volatile
from ottla.coordination.groups.streams.member import Task, Tasks, task_ids, tasks_in
from ottla.coordination.groups.streams.records import StreamsGroupRecord, decode_record, encode_record
from ottla.coordination.groups.streams.streams_groups import INITIAL_DELAY, REVOCATION, SESSION, StreamsGroups
from ottla.coordination.groups.streams.topology import StatusCode
from ottla.coordination.machine import Decision
from ottla.errors import ErrorCode, name_of
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.coordination.transcript import steps_of

ONE = Topology(0, [Subtopology("0", ["in"])])
"""One subtopology without state."""
STATE = Topology(0, [Subtopology("0", ["in"], [], [TopicInfo("log")])])
"""The same with state."""
COUNT = Topology(
    0,
    [
        Subtopology("0", ["in"], [], [], ["rep"]),
        Subtopology("1", [], [], [TopicInfo("log", 0, 0, [KeyValue("cleanup.policy", "compact")])], [], [TopicInfo("rep")]),
    ],
)  # fmt: skip
"""A word count: the first subtopology writes the repartition topic that the second one reads and counts."""
JOIN = Topology(
    0,
    [
        Subtopology("0", ["in"], [], [], ["rep"]),
        Subtopology("1", ["other"], [], [], [], [TopicInfo("rep")], [CopartitionGroup([0], [], [0])]),
    ],
)
"""A join of a source topic and a repartition topic."""
TOPOLOGIES = {
    "one": ONE,
    "state": STATE,
    "count": COUNT,
    "join": JOIN,
    "newer": Topology(1, ONE.subtopologies),
    "regex": Topology(0, [Subtopology("0", [], ["in.*"])]),
    "fixed": Topology(0, [Subtopology("0", ["in"], [], [TopicInfo("log", 3)])]),
    "nothing": Topology(0, [Subtopology("0")]),
}
AT_ONCE = StreamsGroupConfig(initial_rebalance_delay_ms=0, assignment_interval_ms=0)


def show_task(task: Task) -> str:
    return f"{task[0]}_{task[1]}"


def show_tasks(tasks: Tasks) -> str:
    return " ".join([*map(show_task, sorted(tasks.active)), *(f"s{show_task(each)}" for each in sorted(tasks.standby))])


def show_group(group: StreamsGroup | None) -> str:
    if group is None:
        return ""
    members = [
        f"{each.member_id}@{each.epoch}[{' '.join([show_tasks(each.assigned), *(f'-{one}' for one in show_tasks(each.revoking).split())]).strip()}]"
        for each in group.members.values()
    ]
    return f"{group.state} {group.epoch}/{group.assignment_epoch}: {' '.join(members)}".rstrip(": ")


def visible_state(groups: StreamsGroups) -> dict[str, dict[str, Any]]:
    """Return the state of the groups without caches and without what only memory has."""
    hidden = {"_sources", "volatile"}
    return {
        name: {key: value for key, value in vars(group).items() if key not in hidden}
        for name, group in groups.groups.items()
    }


class Story:
    """The groups of a shard, their log, and what their members know."""

    def __init__(self, config: StreamsGroupConfig = AT_ONCE) -> None:
        self.machine = StreamsGroups(config)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.epochs: dict[str, int] = {}
        self.tasks: dict[str, Tasks] = {}
        """The tasks that each member was assigned last."""
        self.ever: dict[str, Tasks] = {}
        self.counts: dict[str, int] = {}
        self.alarms: dict[TimerName, float | None] = {}
        self.notes: list[str] = []
        self.wall_ms = 0
        self.last = StreamsGroupHeartbeatResponse()
        self.seen = ""

    def play(self, text: str) -> Story:
        for command, expected in steps_of(text):
            verb, *words = command.split()
            options = dict(word.split("=") for word in words if "=" in word)
            happened = self.do(verb, [word for word in words if "=" not in word], options)
            shown = show_group(self.machine.groups.get("g"))
            if shown != self.seen:
                happened.append(shown)
                self.seen = shown
            assert happened == expected, command
        return self

    def do(self, verb: str, names: list[str], options: dict[str, str]) -> list[str]:
        match verb:
            case "topics":
                self.see_topics(**{name: int(count) for name, count in options.items()})
                return []
            case "clock":
                self.wall_ms = int(names[0])
                return []
            case "join" | "alive" | "bye" | "pause":
                return self.decide(self.heartbeat(verb, names, options))
            case "quiet" | "slow" | "due":
                kind = {"quiet": SESSION, "slow": REVOCATION, "due": INITIAL_DELAY}[verb]
                return self.expire(kind, names[0] if names else "")
            case "commit" | "txn-commit":
                return [self.commit(verb, names, options)]
        assert verb == "remove", verb
        return self.carry_out(Decision(self.machine.tombstones("g")))

    def see_topics(self, **counts: int) -> None:
        self.counts.update(counts)
        found = [
            TopicMetadata(name, UUID(int=sum(name.encode())), count) for name, count in self.counts.items() if count
        ]
        self.machine.image = TopicImage.of(self.machine.image.version + 1, found)

    def heartbeat(self, verb: str, names: list[str], options: dict[str, str]) -> StreamsGroupHeartbeatRequest:
        member = names[0]
        epoch = {"join": 0, "bye": -1, "pause": -2}.get(verb, self.epochs.get(member, 0))
        request = StreamsGroupHeartbeatRequest(
            "g", member, int(options.get("epoch", epoch)), int(options.get("known", -1)), options.get("instance")
        )
        if "offset" in options:
            request.task_offsets = [TaskOffset("0", 0, int(options["offset"]))]
        request.shutdown_application = "shutdown" in names
        if verb == "join":
            request.topology = TOPOLOGIES[names[1]]
            request.rebalance_timeout_ms = 300_000
            request.process_id = options.get("process", member)
            request.client_tags = [KeyValue("zone", options["zone"])] if "zone" in options else []
            if "port" in options:
                request.user_endpoint = Endpoint("host", int(options["port"]))
            owned: Tasks | None = Tasks()
        elif options.get("owned") == "-" or verb != "alive":
            owned = None
        else:
            owned = self.ever[member] if "keeps" in names else self.tasks.get(member, Tasks())
        if owned is not None:
            request.active_tasks = task_ids(owned.active)
            request.standby_tasks = task_ids(owned.standby)
            request.warmup_tasks = task_ids(owned.warmup)
        return request

    def expire(self, kind: str, member: str) -> list[str]:
        event = TimerExpired(1, TimerName(kind, "g", member), self.wall_ms)
        return self.carry_out(self.machine.handle_timer(event, 0.0))

    def commit(self, verb: str, names: list[str], options: dict[str, str]) -> str:
        member, place = names
        topic, _, partition = place.partition("-")
        offsets = {TopicPartition(topic, int(partition)): OffsetAndMetadata(5)}
        epoch = int(options.get("epoch", self.epochs.get(member, -1)))
        member = "" if member == "?" else member
        if verb == "commit":
            version = int(options.get("version", 9))
            event = OffsetsCommitted(1, "g", offsets, 0, epoch, member, version=version)
            return name_of(self.machine.commit_error(event))
        version = int(options.get("version", 6))
        transactional = TransactionalOffsetsCommitted(1, "g", offsets, 1, 0, 0, epoch, member, version=version)
        return name_of(self.machine.transactional_commit_error(transactional))

    def decide(self, request: StreamsGroupHeartbeatRequest) -> list[str]:
        before = visible_state(self.machine)
        event = StreamsHeartbeat(1, request, "client", "host", self.wall_ms)
        decision = self.machine.heartbeat(event, 0.0)
        assert before == visible_state(self.machine), "deciding changes nothing"
        return self.carry_out(decision)

    def carry_out(self, decision: Decision[Any]) -> list[str]:
        for record in decision.records:
            if isinstance(record, StreamsGroupRecord):
                self.log.append(encode_record(record))
            self.machine.replay(record)
        self.notes += map(str, decision.notes)
        for alarm in decision.alarms:
            self.alarms[alarm.name] = alarm.at  # type: ignore[index]
        self.machine.check()
        self.compare_with_log()
        return [line for reply in decision.replies for line in self.show_result(reply.message)]

    def compare_with_log(self) -> None:
        again = StreamsGroups()
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            again.replay(record)
        assert visible_state(again) == visible_state(self.machine), "the log has the same"

    def restart(self) -> Story:
        """Build the groups from their log, as another coordinator does."""
        machine = StreamsGroups(self.machine.config)
        machine.image = self.machine.image
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            machine.replay(record)
        self.machine = machine
        for decision in machine.loaded(0.0, self.wall_ms):
            self.carry_out(decision)
        return self

    def show_result(self, result: HeartbeatResult) -> list[str]:
        answer = self.last = result.response
        if answer.error_code:
            return [name_of(answer.error_code)]
        member = str(answer.member_id)
        if answer.member_epoch < 0:
            return ["left"]
        self.epochs[member] = answer.member_epoch
        lines = [f"epoch {answer.member_epoch}"]
        if answer.active_tasks is not None:
            found = Tasks(
                tasks_in(answer.active_tasks), tasks_in(answer.standby_tasks or ()), tasks_in(answer.warmup_tasks or ())
            )
            self.tasks[member] = found
            self.ever[member] = self.ever.get(member, Tasks()).combine(found)
            lines = [f"epoch {answer.member_epoch} has {show_tasks(found) or 'nothing'}"]
        lines += [StatusCode(each.status_code).name for each in answer.status or ()]
        if result.missing:
            lines.append("create " + " ".join(f"{each.name}={each.partitions}" for each in result.missing))
        return lines

    @property
    def volatile(self) -> Volatile:
        return self.machine.groups["g"].volatile


__all__ = ["AT_ONCE", "ErrorCode", "Story"]
