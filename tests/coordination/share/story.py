"""Transcripts of a SharePartition: a command, and below it or after an arrow what it returned.

fetch a 0-9,10-19            member a reads these record batches; from=, max=, aborted=, mode=limit, size= are optional
got 0-19 x1

ack a 0-4 accept, 5-9 release, 10-12 accept/gap/renew
write start=0 done=5 0-4:acknowledged/1 5-9:available/1

saved → reply 1              the write is stored; `failed FENCED_LEADER_EPOCH` if it is not
close a, time 31, trim 5, copied 3-3, window, next, letters
"""

from __future__ import annotations

from ottla.coordination.share.events import (
    AcquireMode,
    ClosedOffsetRange,
    Effects,
    FetchedRecords,
    PersistedState,
    ShareAcknowledgementBatch,
    ShareLimits,
)
from ottla.coordination.share.record_state import AcknowledgeType, RecordState
from ottla.coordination.share.share_partition import SharePartition
from ottla.coordination.share.state_batches import PersisterStateBatch
from ottla.errors import ErrorCode
from tests.coordination.transcript import steps_of


def parse_ranges(text: str) -> tuple[ClosedOffsetRange, ...]:
    return tuple(ClosedOffsetRange(*map(int, part.split("-"))) for part in text.split(",") if part)


def parse_state_batches(text: str) -> tuple[PersisterStateBatch, ...]:
    """`0-4:available/1 5-9:acknowledged/2` as batches."""
    batches = []
    for part in text.split():
        offsets, _, state = part.partition(":")
        name, _, count = state.partition("/")
        first_offset, last_offset = map(int, offsets.split("-"))
        batches.append(PersisterStateBatch(first_offset, last_offset, RecordState[name.upper()], int(count)))
    return tuple(batches)


def show_state_batch(batch: PersisterStateBatch) -> str:
    return f"{batch.first_offset}-{batch.last_offset}:{RecordState(batch.state).name.lower()}/{batch.delivery_count}"


class Story:
    """One partition, and the time."""

    def __init__(self, restored: str = "", *, start: int = 0, limits: ShareLimits | None = None) -> None:
        self.partition = SharePartition(
            PersistedState(3, start, parse_state_batches(restored)), leader_epoch=7, limits=limits
        )
        self.now = 0.0
        self.ticket = 0

    def play(self, text: str) -> Story:
        for command, expected in steps_of(text):
            happened = self.run(command)
            self.partition.check()
            assert happened == expected, command
        return self

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        if verb == "fetch":
            return self.fetch(words[0], words[1], dict(word.split("=") for word in words[2:]))
        if verb in ("trim", "window", "next"):
            return self.look(verb, words)
        return show_effects(self.act(verb, words))

    def act(self, verb: str, words: list[str]) -> Effects:
        self.ticket += verb in ("ack", "close")
        match verb:
            case "ack":
                acknowledgements = [parse_acknowledgement(part) for part in " ".join(words[1:]).split(", ")]
                return self.partition.acknowledge(self.ticket, words[0], acknowledgements, self.now)
            case "close":
                return self.partition.release_member(self.ticket, words[0])
            case "saved" | "failed":
                return self.partition.complete_write(ErrorCode[words[0]] if words else ErrorCode.NONE, self.now)
            case "time":
                self.now = float(words[0])
                return self.partition.expire_locks(self.now)
            case "copied":
                return self.partition.complete_dead_letters(*parse_ranges(words[0])[0])
            case "letters":
                return Effects(dead_letters=self.partition.resume_dead_letters())
        assert verb == "fence", verb
        return self.partition.fence()

    def look(self, verb: str, words: list[str]) -> list[str]:
        if verb == "trim":
            self.partition.move_log_start(int(words[0]))
            return []
        if verb == "next":
            return [f"{self.partition.next_fetch_offset} {'more' if self.partition.can_acquire else 'full'}"]
        shown = [show_state_batch(batch) + f"{':' * bool(who)}{who}" for batch, who in self.partition.ranges]
        return [" ".join([f"{self.partition.start_offset}..{self.partition.end_offset}", *shown])]

    def fetch(self, member: str, batches: str, options: dict[str, str]) -> list[str]:
        ranges = parse_ranges(batches)
        fetched = FetchedRecords(
            int(options.get("from", ranges[0].first_offset)), ranges, parse_ranges(options.get("aborted", ""))
        )
        acquired = self.partition.acquire(
            member,
            fetched,
            int(options.get("max", 500)),
            self.now,
            AcquireMode.RECORD_LIMIT if options.get("mode") == "limit" else AcquireMode.BATCH_OPTIMIZED,
            int(options.get("size", 500)),
        )
        if not acquired:
            return []
        return [
            "got " + " ".join(f"{each.first_offset}-{each.last_offset} x{each.delivery_count}" for each in acquired)
        ]


def parse_acknowledgement(text: str) -> ShareAcknowledgementBatch:
    offsets, types = text.split()
    first, last = map(int, offsets.split("-"))
    numbers = [int(name) if name.isdigit() else AcknowledgeType[name.upper()] for name in types.split("/")]
    return ShareAcknowledgementBatch(first, last, numbers)


def show_effects(effects: Effects) -> list[str]:
    lines = []
    if effects.write is not None:
        write = effects.write
        assert (write.state_epoch, write.leader_epoch) == (3, 7)
        shown = " ".join(map(show_state_batch, write.batches))
        lines.append(f"write start={write.start_offset} done={write.delivery_complete_count} {shown}")
    lines += [f"reply {each.ticket} {each.error.name if each.error else ''}".rstrip() for each in effects.completions]
    lines += [
        f"copy {each.first_offset}-{each.last_offset} x{each.delivery_count} {each.cause.name.lower()}"
        for each in effects.dead_letters
    ]
    return lines
