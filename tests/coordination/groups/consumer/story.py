"""The transcript language for consumer groups, in addition to that for classic groups.

    topics t=4 u=2                  the topics, with their numbers of partitions
    hello a t+u                     a member joins; also with static=i, regex=…, by=range, rebalance=60, id=a2
    sight a t+u                     from now on a's client may describe only these topics
    alive a owns=t-0,t-1            a heartbeat; owned partitions only if given, epoch=3 for an epoch other than its own;
                                    `alive a t owns= rebalance=60` is a full heartbeat, as after a lost response
    bye a | bye a for-a-while       it leaves
    fetch a | fetch a epoch=2       it fetches committed offsets

Below each command: the response, and the group if it has changed: state, epoch/assignment epoch, and for each member
its epoch and partitions, `-t-1` for one it must revoke and `?` while it waits for partitions of others. With `records`
also the log's records. After each step the group is rebuilt from the log, and must be the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat, TopicsChanged
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.consumer.member import ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.records import Record, decode_record
from ottla.coordination.groups.shard import Event, Shard
from ottla.coordination.machine import Decision
from ottla.errors import name_of
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode,
    encode,
)
from ottla.protocol.messages.consumer_protocol import TopicPartition as TopicIndexes
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.groups import story
from tests.coordination.groups.story import partition, shown_group, shown_reply


class Story(story.Story):
    """A machine of groups of both kinds."""

    def __init__(self, *, records: bool = False, **config: Any) -> None:
        super().__init__(**config)
        self.records = records
        self.version = 0
        self.topic_counts: dict[str, int] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.visible: dict[str, set[str]] = {}
        self.before: dict[str, dict[str, Any]] = {}
        """The groups as last printed."""

    def do(self, verb: str, names: list[str], options: dict[str, str]) -> None:
        if verb in VERBS:
            VERBS[verb](self, names, options)
        else:
            super().do(verb, names, options)

    @property
    def consumers(self) -> ConsumerGroup:
        return self.machine.consumers.groups["g"]

    def send_event(self, who: str, event: Callable[[int], Event]) -> None:
        self.before = copied(self.machine)
        super().send_event(who, event)

    def carry_out(self, decision: Decision[Record]) -> None:
        assert state_of(self.machine) == self.before, "deciding changes nothing"
        before = list(self.happened)
        super().carry_out(decision)
        kept_lines = [line for line in self.happened[len(before) :] if line.startswith("keep ")]
        for line in kept_lines if not self.records else ():
            self.happened.remove(line)
        self.compare_with_log()

    def compare_with_log(self) -> None:
        again = Shard(self.config)
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            again.replay(record)
        assert state_of(again) == state_of(self.machine), "the log says the same"

    def show_record(self, record: Record) -> str:
        if isinstance(record, ConsumerGroupRecord):
            return shown_record(record, self)
        return super().show_record(record)

    def show_reply(self, message: Any) -> str:
        if isinstance(message, ConsumerGroupHeartbeatResponse):
            return self.shown_answer(message)
        if isinstance(message, SyncGroupResponse) and not message.error_code and message.assignment[:1] == b"\0":
            return f"has {self.shown_assignment(message.assignment)}"
        if isinstance(message, JoinGroupResponse) and not message.leader and not message.error_code:
            return f"{message.member_id} in {message.generation_id} by {message.protocol_name}"
        return shown_reply(message)

    def shown_assignment(self, assignment: bytes) -> str:
        found = decode(ConsumerProtocolAssignment, assignment)
        places = [f"{each.topic}-{index}" for each in found.assigned_partitions for index in each.partitions]
        return " ".join(places) or "nothing"

    def shown_answer(self, answer: ConsumerGroupHeartbeatResponse) -> str:
        if answer.error_code:
            return f"{name_of(answer.error_code)} {answer.error_message}"
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}"
        places = [(each.topic_id, index) for each in answer.assignment.topic_partitions for index in each.partitions]
        return f"epoch {answer.member_epoch} has {self.listed(places) or 'nothing'}"

    def listed(self, places: Any) -> str:
        return " ".join(sorted(self.shown_place(place) for place in places))

    def shown_place(self, place: TopicIdPartition) -> str:
        name = next((name for name, topic_id in self.topic_ids.items() if topic_id == place[0]), "gone")
        return f"{name}-{place[1]}"

    def shown_now(self) -> str | None:
        group = self.machine.consumers.groups.get("g")
        if group is None:
            classic: ClassicGroup | None = self.machine.groups.get("g")
            return shown_group(classic) if classic else None
        members = " ".join(self.shown_member(member) for member in group.members.values())
        return f"{group.state} {group.epoch}/{group.assignment_epoch}: {members}".rstrip(": ")

    def shown_member(self, member: ConsumerMember) -> str:
        parts = [self.listed(member.assigned), *(f"-{self.shown_place(place)}" for place in sorted(member.revoking))]
        waits = "?" * (member.state is MemberState.UNRELEASED_PARTITIONS)
        return f"{member.member_id}{'~' * bool(member.classic)}@{member.epoch}[{' '.join(filter(None, parts))}{waits}]"

    def topics(self, names: list[str], options: dict[str, str]) -> None:
        """Apply an event; a deleted topic that is created again has another id."""
        self.version += 1
        counts = {name: int(count) for name, count in options.items()}
        self.topic_ids = {
            name: self.topic_ids.get(name) or UUID(int=self.version << 32 | number)
            for number, name in enumerate(counts)
        }
        self.topic_counts = counts
        self.see_topics()

    def rebuild(self) -> None:
        super().rebuild()
        self.see_topics()

    def see_topics(self) -> None:
        image = TopicImage.of(
            self.version,
            [TopicMetadata(name, self.topic_ids[name], count) for name, count in self.topic_counts.items()],
        )
        self.send_event("", lambda ticket: TopicsChanged(ticket, image))
        self.happened = []

    def heart(self, who: str, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> None:
        self.send_event(
            who,
            lambda ticket: (
                ConsumerHeartbeat(
                    ticket, request, version, f"{who}!", "app", "/h", self.wall_ms, self.visible[who].__contains__
                )
                if who in self.visible
                else ConsumerHeartbeat(ticket, request, version, f"{who}!", "app", "/h", self.wall_ms)
            ),
        )

    def sight(self, names: list[str], options: dict[str, str]) -> None:
        who, *topics = names
        self.visible[who] = {name for each in topics for name in each.split("+")}

    def assignment(self, text: str) -> bytes:
        places = [partition(each) for each in text.split(",") if each]
        return encode(ConsumerProtocolAssignment([TopicIndexes(place.topic, [place.partition]) for place in places]))

    def subscription(self, topics: str, options: dict[str, str]) -> bytes:
        places = [partition(each) for each in options.get("owned", "").split(",") if each]
        owned = [TopicIndexes(place.topic, [place.partition]) for place in places]
        return encode(ConsumerProtocolSubscription(topics.split("+"), owned_partitions=owned))

    def hello(self, names: list[str], options: dict[str, str]) -> None:
        who, *topics = names
        request = ConsumerGroupHeartbeatRequest(
            "g",
            options.get("id", who),
            0,
            options.get("static"),
            options.get("rack"),
            round(float(options.get("rebalance", 60)) * 1000),
            [name for each in topics for name in each.split("+")] if topics or "regex" not in options else None,
            options.get("regex"),
            options.get("by"),
            [],
        )
        self.heart(who, request)

    def alive(self, names: list[str], options: dict[str, str]) -> None:
        who, *topics = names
        member = self.consumers.members.get(who) if "g" in self.machine.consumers.groups else None
        request = ConsumerGroupHeartbeatRequest(
            "g",
            who,
            int(options.get("epoch", member.epoch if member else 1)),
            options.get("static"),
            rebalance_timeout_ms=round(float(options.get("rebalance", -0.001)) * 1000),
            subscribed_topic_names=[name for each in topics for name in each.split("+")] if topics else None,
            subscribed_topic_regex=options.get("regex"),
            topic_partitions=self.owned(options["owns"]) if "owns" in options else None,
        )
        self.heart(who, request)

    def owned(self, text: str) -> list[TopicPartitions]:
        places = [partition(each) for each in text.split(",") if each]
        return [TopicPartitions(self.topic_ids[place.topic], [place.partition]) for place in places]

    def bye(self, names: list[str], options: dict[str, str]) -> None:
        epoch = -2 if "for-a-while" in names else -1
        self.heart(names[0], ConsumerGroupHeartbeatRequest("g", names[0], epoch, options.get("static")))

    def fetch(self, names: list[str], options: dict[str, str]) -> None:
        code = self.machine.fetch_error(
            "g", names[0], int(options.get("epoch", self.consumers.members[names[0]].epoch))
        )
        self.happened.append(f"{names[0]}: {name_of(code)}")


def state_of(machine: Shard) -> dict[str, dict[str, Any]]:
    """Everything about consumer groups, but for what was worked out of the rest."""
    groups = machine.consumers.groups
    return {name: {**vars(group), "_names": None} for name, group in groups.items()}


def copied(machine: Shard) -> dict[str, dict[str, Any]]:
    """The same, which stays as it is whatever becomes of the groups."""
    return {
        name: {field: dict(value) if isinstance(value, dict) else value for field, value in state.items()}
        for name, state in state_of(machine).items()
    }


def shown_record(record: ConsumerGroupRecord, tale: Story) -> str:
    """One record of a consumer group."""
    match record.key, record.value:
        case kept.GroupEpochKey(), kept.GroupEpochValue(epoch=epoch):
            return f"keep epoch {epoch}"
        case kept.TargetEpochKey(), kept.TargetEpochValue(assignment_epoch=epoch):
            return f"keep target epoch {epoch}"
        case kept.MemberMetadataKey(member_id=member), kept.MemberMetadataValue(subscribed_topic_names=names):
            return f"keep member {member} {'+'.join(names)}".rstrip()
        case kept.TargetMemberKey(member_id=member), kept.TargetMemberValue(topic_partitions=parts):
            return f"keep target {member} {tale.listed((each.topic_id, p) for each in parts for p in each.partitions)}"
        case kept.CurrentMemberKey(member_id=member), kept.CurrentMemberValue() as value:
            has = tale.listed((each.topic_id, p) for each in value.assigned_partitions for p in each.partitions)
            return f"keep current {member} {MemberState(value.state).name} {value.member_epoch} {has}".rstrip()
        case kept.RegularExpressionKey(regular_expression=regex), kept.RegularExpressionValue(topics=topics):
            return f"keep regex {regex} {'+'.join(topics)}"
    name = type(record.key).__name__.removesuffix("Key")
    return " ".join(filter(None, ["keep no", name, getattr(record.key, "member_id", "")]))


VERBS: dict[str, Callable[[Story, list[str], dict[str, str]], None]] = {
    "topics": Story.topics,
    "hello": Story.hello,
    "alive": Story.alive,
    "bye": Story.bye,
    "fetch": Story.fetch,
    "sight": Story.sight,
}
