"""A registry: the state, and changes that the leader writes to the topic one after the other.

A server may stop being the leader while its record is on the way. Therefore a write returns the records of other servers
that came in between. If one of them took the same id or version, the own record is taken back, and the change is decided
again. So no id has two schemas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ottla.registry import decisions, errors, records
from ottla.registry.compatibility import DEFAULT_LEVEL
from ottla.registry.decisions import Decision, Draft, Examined, SchemaRequest
from ottla.registry.election import Election, Leadership
from ottla.registry.parsed_schemas import ParsedSchemas
from ottla.registry.records import Record
from ottla.registry.schema_topic import SchemaTopic
from ottla.registry.state import RegistryState, Version
from ottla.registry.subjects import context_of

log = logging.getLogger(__name__)

QUICK_TEXT = 4_000
"""Schemas up to so many characters are examined in the event loop: that is faster than a thread."""
MOST_ATTEMPTS = 5
"""The limit on attempts of a registration that loses against another server."""


class Leader:
    """Knows the leader, and whether it is this server. All methods belong to one event loop."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._known = asyncio.Event()
        self._present: Leadership | None = None
        self._election: Election | None = None

    def follow(self, election: Election) -> None:
        """Take part in an election; `set_present` is its callback."""
        self._election = election
        election.start()

    def set_present(self, leadership: Leadership | None) -> None:
        """Set the result of an election; may be called by any thread."""
        self._loop.call_soon_threadsafe(self._set, leadership)

    def _set(self, leadership: Leadership | None) -> None:
        self._present = leadership
        if leadership is not None and leadership.leader is not None:
            self._known.set()
        else:
            self._known.clear()

    @property
    def present(self) -> Leadership | None:
        """The result of the last election, None if the membership is lost."""
        return self._present

    async def find(self) -> Leadership:
        """Return the leader, waiting for an election. Raise RegistryError if there is none in time."""
        try:
            await asyncio.wait_for(self._known.wait(), self._patience)
        except TimeoutError:
            raise errors.unknown_leader() from None
        present = self._present
        if present is None or (present.is_own and self._election is not None and not self._election.has_live_session()):
            raise errors.unknown_leader()
        return present


class Registry:
    """Registers, deletes and compares schemas. All methods belong to one event loop."""

    def __init__(self, state: RegistryState, topic: SchemaTopic, schemas: ParsedSchemas, leader: Leader) -> None:
        self.state = state
        self.topic = topic
        self.schemas = schemas
        self.leader = leader
        self._writing = asyncio.Lock()
        """Held while a change is decided and written: the next one is decided with its effect."""
        self._prepared_generation = -1
        """The generation of the group for which this leader has read the topic to its end."""

    def find_registered(self, subject: str, request: SchemaRequest) -> Any:
        """Return the response to a registration that changes nothing, None if the schema has to be examined.

        Producers register the same text again at each start; any server answers that from memory.
        """
        if request.id is not None or request.version is not None or self.state.mode(subject) == decisions.IMPORT:
            return None
        if any(each.version == decisions.LATEST for each in request.references or ()):
            return None
        config = self.state.config(subject)
        content = decisions.read_request(self.state, subject, request)
        inherited = decisions.with_inherited(content, config, self.state.versions(subject))
        found = decisions.find_version(self.state, subject, inherited)
        if found is None or found.content != inherited:
            return None
        decisions.check_writable(self.state, subject)
        return decisions.registered(found)

    async def register(self, subject: str, request: SchemaRequest, *, is_normalized: bool = False) -> Any:
        """Register a schema, or find it if the subject has it. Return the response."""
        async with self._writing:
            await self._prepare()
            for _ in range(MOST_ATTEMPTS):
                draft = decisions.draft_registration(self.state, subject, request, is_normalized=is_normalized)
                decisions.check_writable(self.state, subject)
                examined = await self._examine(draft)
                decision = decisions.decide_registration(self.state, draft, examined, request)
                if not decision.records:
                    return decision.response
                others = await self.topic.write(decision.records)
                if not others or not await self._take_back(decision.records, others):
                    return decision.response
            raise errors.store_failed(f"another server writes to topic {self.topic.topic} at the same time: retry")

    async def _take_back(self, written: Sequence[Record], others: Sequence[Record]) -> bool:
        """Remove a version that collides with another server's. Return False if there is no collision."""
        record = written[0]
        assert record.value is not None
        value = records.decode(record.value)
        content = records.content_of(value)
        same_key = [each for each in others if each.key == record.key and each.value is not None]
        holder = self.state.content(context_of(value["subject"]), value["id"])
        if not same_key and holder == content:
            return False
        log.warning("took back a version because of another server subject=%s id=%d", value["subject"], value["id"])
        await self.topic.write([same_key[-1] if same_key else Record(record.key, None)])
        return True

    async def look_up(
        self, subject: str, request: SchemaRequest, *, with_deleted: bool = False, is_normalized: bool = False
    ) -> Version:
        """Return the version of a subject that has a schema."""
        if not self.state.versions(subject, with_deleted=with_deleted):
            raise errors.subject_not_found(subject)
        content = decisions.read_request(self.state, subject, request, may_be_deleted=with_deleted)
        found = decisions.find_version(self.state, subject, content, with_deleted=with_deleted)
        if found is None:
            normalized = is_normalized or bool(self.state.config(subject).get("normalize"))
            draft = decisions.make_draft(self.state, subject, content, (), "NONE", is_normalized=normalized)
            examined = await self._examine(draft)
            found = decisions.find_version(self.state, subject, examined.content, with_deleted=with_deleted)
        if found is None:
            raise errors.schema_not_found()
        return found

    async def check_compatibility(
        self, subject: str, request: SchemaRequest, number: int | None, *, is_normalized: bool = False
    ) -> tuple[str, ...]:
        """Return why a schema is incompatible with a version; with None, with those that the config requires."""
        state = self.state
        content = decisions.read_request(state, subject, request)
        versions = state.versions(subject)
        if number is not None:
            if number == decisions.LATEST:
                versions = versions[-1:]
            else:
                versions = [decisions.find_numbered(state, subject, number)]
        level = state.config(subject).get("compatibilityLevel", DEFAULT_LEVEL)
        draft = decisions.make_draft(state, subject, content, versions, level, is_normalized=is_normalized)
        return (await self._examine(draft)).messages

    async def change(self, decide: Callable[[RegistryState], Decision]) -> Any:
        """Decide about a change with the state of all earlier ones, write it, and return the response."""
        async with self._writing:
            await self._prepare()
            decision = decide(self.state)
            if decision.records:
                await self.topic.write(decision.records)
            return decision.response

    async def _prepare(self) -> None:
        """Read the topic to its end after an election: an earlier leader may have written until now."""
        leadership = await self.leader.find()
        if not leadership.is_own:
            raise errors.unknown_leader()
        if leadership.generation != self._prepared_generation:
            await self.topic.write([records.noop_record()])
            self._prepared_generation = leadership.generation

    async def _examine(self, draft: Draft) -> Examined:
        size = len(draft.content.text) + sum(len(each.content.text) for each in draft.earlier)
        if size + sum(len(each.text) for each in draft.references) <= QUICK_TEXT:
            return decisions.examine(draft, self.schemas)
        return await asyncio.to_thread(decisions.examine, draft, self.schemas)
