"""Share groups at their coordinator, as transcripts.

    topics t=2 u=1                the topics, with their numbers of partitions
    join a t+u | alive a [t] | bye a    heartbeats; `epoch=3` for an epoch other than its own
    init                          the share coordinator has created every state that is waited for
    quiet a                       the session of a has expired
    alter t-0=5 | drop t | delete | deleted t | gone t

Below each command are the response, the states to create or delete, and the group if it has changed: its state, epoch/assignment epoch, and
each member with its epoch and partitions; `+` before partitions whose state is being created. After each step the groups are rebuilt from the
log and must be the same.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.groups.config import ShareGroupConfig
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.events import TimerExpired, TimerName
from ottla.coordination.groups.share.events import (
    DescribedPartitions,
    OffsetChanges,
    OffsetDeletions,
    ShareGroupDeletionStarted,
    ShareHeartbeat,
    ShareOffsetsAlterRequested,
    ShareOffsetsDeleteRequested,
    ShareTopicsDeleted,
    StateDeleted,
    StateInitialized,
)
from ottla.coordination.groups.share.group import ShareGroup
from ottla.coordination.groups.share.records import ShareGroupRecord, decode_record, encode_record
from ottla.coordination.groups.share.share_groups import SESSION, ShareGroups
from ottla.coordination.machine import Alarm, Decision
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.coordination.transcript import steps_of


def topic_id(name: str) -> UUID:
    return UUID(int=ord(name))


def show_partition(partition: tuple[UUID, int]) -> str:
    return f"{chr(partition[0].int)}-{partition[1]}"


class Story:
    """The groups of a shard, their log, and the members' epochs."""

    def __init__(self, config: ShareGroupConfig | None = None) -> None:
        self.machine = ShareGroups(config)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.epochs: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.alarms: dict[TimerName, float | None] = {}
        self.notes: list[str] = []
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
                self.counts.update({name: int(count) for name, count in options.items()})
                self.see_topics()
                return []
            case "join" | "alive" | "bye":
                return self.heartbeat(verb, names, options)
            case "init":
                return self.initialize()
            case "quiet":
                return self.carry_out(
                    self.machine.handle_timer(TimerExpired(1, TimerName(SESSION, "g", names[0]), 0), 0.0)
                )
            case "gone":
                del self.counts[names[0]]
                self.see_topics()
                return self.decide(ShareTopicsDeleted(1, {topic_id(names[0])}))
        return self.administer(verb, names, options)

    def administer(self, verb: str, names: list[str], options: dict[str, str]) -> list[str]:
        match verb:
            case "alter":
                offsets = {(name[0], int(name[2:])): int(offset) for name, offset in options.items()}
                return self.decide(ShareOffsetsAlterRequested(1, "g", offsets, 0))
            case "drop":
                return self.decide(ShareOffsetsDeleteRequested(1, "g", names))
            case "delete":
                return self.decide(ShareGroupDeletionStarted(1, "g"))
            case "deleted":
                return self.decide(StateDeleted(1, "g", set(map(topic_id, names))))
        assert verb == "remove", verb
        return self.carry_out(Decision(self.machine.tombstones("g")))

    def see_topics(self) -> None:
        found = [TopicMetadata(name, topic_id(name), count) for name, count in self.counts.items()]
        self.machine.image = TopicImage.of(self.machine.image.version + 1, found)

    def heartbeat(self, verb: str, names: list[str], options: dict[str, str]) -> list[str]:
        member = names[0]
        epoch = {"join": 0, "bye": -1}.get(verb, self.epochs.get(member, 0))
        topics = names[1].split("+") if len(names) > 1 else None
        request = ShareGroupHeartbeatRequest("g", member, int(options.get("epoch", epoch)), None, topics)
        return self.decide(ShareHeartbeat(1, request, "client", "host", 0))

    def initialize(self) -> list[str]:
        lines = []
        for group, epoch, offsets in list(self.machine.list_initializations()):
            shown = " ".join(f"{show_partition(each[:2])}={each.start_offset}" for each in offsets)
            lines.append(f"initialize epoch={epoch} {shown}")
            lines += self.decide(StateInitialized(1, group, [each[:2] for each in offsets]))
        return lines

    def decide(self, event: Any) -> list[str]:
        before = {name: vars(group.copy()) for name, group in self.machine.groups.items()}
        decision = self.machine.decide(event, 0.0)
        after = {name: vars(group) for name, group in self.machine.groups.items()}
        assert without_cache(before) == without_cache(after), "deciding changes nothing"
        return self.carry_out(decision)

    def carry_out(self, decision: Decision[ShareGroupRecord]) -> list[str]:
        for record in decision.records:
            self.log.append(encode_record(record))
            self.machine.replay(record)
        self.notes += map(str, decision.notes)
        for alarm in decision.alarms:
            self.alarms[alarm.name] = alarm.at  # type: ignore[index]
        self.machine.check()
        self.compare_with_log()
        return [line for reply in decision.replies for line in self.show_reply(reply.message)]

    def compare_with_log(self) -> None:
        again = ShareGroups()
        for key, value in self.log:
            record = decode_record(key, value)
            assert record is not None
            again.replay(record)
        found, expected = ({name: vars(group) for name, group in each.groups.items()} for each in (again, self.machine))
        for name, group in without_cache(expected).items():
            mine = without_cache(found)[name]
            assert mine.pop("progress").initialized == group.pop("progress").initialized
            assert mine == group, "the log has the same"

    def show_reply(self, message: Any) -> list[str]:
        if isinstance(message, ShareGroupHeartbeatResponse):
            if message.error_code:
                return [name_of(message.error_code)]
            if message.member_epoch == -1:
                return ["left"]
            self.epochs[str(message.member_id)] = message.member_epoch
            if message.assignment is None:
                return [f"epoch {message.member_epoch}"]
            found = [
                (each.topic_id, index) for each in message.assignment.topic_partitions for index in each.partitions
            ]
            return [f"epoch {message.member_epoch} has {' '.join(map(show_partition, found)) or 'nothing'}"]
        if isinstance(message, OffsetChanges):
            shown = [f"{show_partition(each[:2])}={each.start_offset}" for each in message.initialization.offsets]
            errors = [f"{name}-{index} {code.name}" for (name, index), code in message.errors.items()]
            return [" ".join([f"initialize epoch={message.initialization.state_epoch}", *shown, *errors])]
        if isinstance(message, OffsetDeletions):
            errors = [f"{name} {code.name}" for name, code in message.errors.items()]
            return [" ".join(["delete", *map(show_partition, message.partitions), *errors])]
        return [ErrorCode(message).name]


def without_cache(groups: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {key: value for key, value in group.items() if key != "_names"} for name, group in groups.items()}


def show_group(group: ShareGroup | None) -> str:
    if group is None:
        return ""
    members = " ".join(
        f"{member.member_id}@{member.epoch}[{' '.join(map(show_partition, sorted(member.assigned)))}]"
        for member in group.members.values()
    )
    created = "".join(f" +{show_partition(each)}" for each in sorted(group.progress.initializing))
    deleted = "".join(f" -{chr(each.int)}" for each in sorted(group.progress.deleting))
    return f"{group.state} {group.epoch}/{group.assignment_epoch}: {members}".rstrip(": ") + created + deleted


ONE_READS = """
    topics t=2 →

    join a t
    epoch 1 has nothing
    Stable 1/1: a@1[] +t-0 +t-1

    init
    initialize epoch=1 t-0=-1 t-1=-1
    Stable 1/1: a@1[]

    alive a
    epoch 2 has t-0 t-1
    Stable 2/2: a@2[t-0 t-1]
"""


def test_a_member_gets_partitions_once_their_states_exist() -> None:
    Story().play(f"""{ONE_READS}
        alive a → epoch 2
        init →
    """)


def test_what_happens_in_a_group_is_noted() -> None:
    story = Story().play(f"""{ONE_READS}
        bye a
        left
        Empty 3/2
    """)

    assert story.notes == [
        "Member a joined share group g.",
        "Share group g is in epoch 1 (it is new).",
        "Share group g has a target assignment for epoch 1: 1 members.",
        "Share group g is in epoch 2 (its topics or their states have changed).",
        "Share group g has a target assignment for epoch 2: 1 members.",
        "Member a was removed from share group g: it has left.",
        "Share group g is in epoch 3 (member a is removed: it has left).",
    ]


def test_members_share_partitions_and_a_member_has_its_target_at_once() -> None:
    Story().play(f"""{ONE_READS}
        join b t
        epoch 3 has t-1
        Stable 3/3: a@2[t-0 t-1] b@3[t-1]

        alive a
        epoch 3 has t-0
        Stable 3/3: a@3[t-0] b@3[t-1]

        join c t
        epoch 4 has t-0
        Stable 4/4: a@3[t-0] b@3[t-1] c@4[t-0]

        alive a
        epoch 4 has t-0 t-1
        Stable 4/4: a@4[t-0 t-1] b@3[t-1] c@4[t-0]
    """)


def test_a_member_that_leaves_starts_an_epoch_and_the_last_one_leaves_an_empty_group() -> None:
    Story().play(f"""{ONE_READS}
        join b t
        epoch 3 has t-1
        Stable 3/3: a@2[t-0 t-1] b@3[t-1]

        bye a
        left
        Stable 4/3: b@3[t-1]

        alive b
        epoch 4 has t-0 t-1
        Stable 4/4: b@4[t-0 t-1]

        quiet b
        Empty 5/4

        quiet b →
        alive b → UNKNOWN_MEMBER_ID
    """)


def test_a_lost_response_is_sent_again_and_older_epochs_are_fenced() -> None:
    Story().play(f"""{ONE_READS}
        alive a epoch=1 → epoch 2 has t-0 t-1
        alive a epoch=3 → FENCED_MEMBER_EPOCH
        join a t → epoch 2 has t-0 t-1

        alive a t+u
        epoch 3
        Stable 3/3: a@3[t-0 t-1]

        alive a epoch=1 → FENCED_MEMBER_EPOCH
    """)


def test_new_partitions_of_a_known_topic_start_at_zero() -> None:
    Story().play(f"""{ONE_READS}
        topics t=3 u=1 →

        alive a t+u
        epoch 3
        Stable 3/3: a@3[t-0 t-1] +t-2 +u-0

        init
        initialize epoch=3 t-2=0 u-0=-1
        Stable 3/3: a@3[t-0 t-1]

        alive a
        epoch 4 has t-0 t-1 t-2 u-0
        Stable 4/4: a@4[t-0 t-1 t-2 u-0]
    """)


def test_a_deleted_topic_is_not_assigned_any_more() -> None:
    Story().play(f"""{ONE_READS}
        gone t →

        alive a
        epoch 3 has nothing
        Stable 3/3: a@3[]
    """)


def test_offsets_are_altered_only_in_an_empty_group_and_start_an_epoch() -> None:
    Story().play(f"""
        {ONE_READS}
        alter t-0=5 → NON_EMPTY_GROUP

        bye a
        left
        Empty 3/2

        alter t-0=5 t-7=0 u-0=0
        initialize epoch=4 t-0=5 t-7 UNKNOWN_TOPIC_OR_PARTITION u-0 UNKNOWN_TOPIC_OR_PARTITION
        Empty 4/2

        topics u=1 →

        alter u-0=9
        initialize epoch=5 u-0=9
        Empty 5/2 +u-0
    """)


def test_altered_offsets_create_a_group_before_its_first_member_joins() -> None:
    Story().play("""
        topics t=1 →

        alter t-0=5
        initialize epoch=1 t-0=5
        Empty 1/0 +t-0
    """)


def test_deleted_offsets_are_deleting_until_the_share_coordinator_is_done() -> None:
    Story().play(f"""{ONE_READS}
        drop t → NON_EMPTY_GROUP

        bye a
        left
        Empty 3/2

        drop t x
        delete t-0 t-1 x UNKNOWN_TOPIC_OR_PARTITION
        Empty 3/2 -t

        alter t-0=5 → initialize epoch=3 t-0 INVALID_REQUEST

        drop t → delete t-0 t-1

        join b t
        epoch 4 has nothing
        Stable 4/4: b@4[] -t

        deleted t
        Stable 4/4: b@4[]

        alive b
        epoch 4
        Stable 4/4: b@4[] +t-0 +t-1
    """)


def test_the_states_of_a_group_are_deleted_before_the_group() -> None:
    story = Story().play(f"""{ONE_READS}
        delete → NON_EMPTY_GROUP

        bye a
        left
        Empty 3/2

        delete
        delete t-0 t-1
        Empty 3/2 -t
    """)
    pending = list(story.machine.list_deletions())
    story.play("""
        deleted t
        Empty 3/2
    """)
    story.carry_out(Decision(story.machine.tombstones("g")))

    assert pending == [("g", topic_id("t"))]
    assert story.machine.groups == {}
    assert story.machine.delete_error("g") == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_described_for_the_named_partitions_or_for_all_with_a_state() -> None:
    groups = (
        Story()
        .play(f"""{ONE_READS}
        topics t=3 u=1 →
    """)
        .machine
    )

    everything = groups.find_described_partitions("g", None)
    named = groups.find_described_partitions("g", {"t": [1, 2, 3], "x": [0]})

    assert everything == DescribedPartitions(((topic_id("t"), 0), (topic_id("t"), 1)))
    assert named == DescribedPartitions(
        ((topic_id("t"), 1), (topic_id("t"), 2)),
        {("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    )
    assert groups.find_described_partitions("h", None) == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ShareGroupHeartbeatRequest("g", "", 0, None, ["t"]), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("", "a", 0, None, ["t"]), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("g", "a", 0, "", ["t"]), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("g", "a", -2, None, ["t"]), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("g", "a", 0, None, None), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("g", "a", 0, None, []), "INVALID_REQUEST"),
        (ShareGroupHeartbeatRequest("g", "a", 1, None, None), "GROUP_ID_NOT_FOUND"),
        (ShareGroupHeartbeatRequest("g", "a", -1, None, None), "GROUP_ID_NOT_FOUND"),
    ],
)
def test_a_malformed_heartbeat_is_rejected(request_: ShareGroupHeartbeatRequest, error: str) -> None:
    story = Story()

    assert story.decide(ShareHeartbeat(1, request_, "client", "host", 0)) == [error]
    assert story.machine.groups == {}


def test_a_full_group_takes_no_more_members() -> None:
    Story(ShareGroupConfig(max_size=1)).play(f"""{ONE_READS}
        join b t → GROUP_MAX_SIZE_REACHED
        join a t → epoch 2 has t-0 t-1
    """)


def test_a_member_has_a_session_that_each_heartbeat_restarts_and_a_restart_of_the_broker_too() -> None:
    story = Story(ShareGroupConfig(session_timeout_ms=9_000)).play(ONE_READS)
    name = TimerName(SESSION, "g", "a")

    restarted = story.machine.loaded(100.0, 0)
    at = story.alarms[name]
    story.play("""
        bye a
        left
        Empty 3/2
    """)

    assert at == 9.0
    assert [alarm for decision in restarted for alarm in decision.alarms] == [Alarm(name, 109.0)]
    assert story.alarms[name] is None
