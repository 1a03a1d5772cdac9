"""The election of a leader among the servers of one topic, by the group protocol `sr` of Confluent's registry and Karapace.

Servers are members of a group of brokers' coordinator. Each sends its identity as JSON in the protocol `v0`. The group's
leader chooses the leading server, and sends its identity to every member. Heartbeats keep the membership:

    find the coordinator ─► join ─► sync ─► heartbeats ─► (rebalance, lost membership) ─► join …

The functions at the top are pure. `Election` runs the protocol in a thread of its own, since a member must send heartbeats
while the server is busy.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ottla.client.admin.admin_api_driver import AdminApiDriver
from ottla.client.admin.config import AdminConfig
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OttlaError, WakeupError, error_for
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

log = logging.getLogger(__name__)

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
HEARTBEAT_SECONDS = 3.0
RETRY_SECONDS = 0.5
REQUEST_SECONDS = 30.0
REJOIN_CODES = (ErrorCode.REBALANCE_IN_PROGRESS,)
RESET_CODES = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class Identity(msgspec.Struct, frozen=True):
    """A server as the others see it."""

    host: str
    port: int
    scheme: str = "http"
    version: int = 1
    master_eligibility: bool = True
    leader: bool = False
    """True if the server is the leader; a new election prefers it."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Assignment(msgspec.Struct, frozen=True):
    """The result of an election, as each member receives it."""

    master: str | None = None
    """The member id of the leading server; None if no server may lead."""
    master_identity: Identity | None = None
    error: int = 0
    version: int = 1


def read_identity(metadata: bytes) -> Identity | None:
    """Return the identity of a member; None if another program has sent it."""
    try:
        return msgspec.json.decode(metadata, type=Identity)
    except msgspec.DecodeError:
        return None


def elect(members: Mapping[str, Identity | None]) -> Assignment:
    """Return the assignment: the present leader, else the server with the lowest URL."""
    eligible = [
        (not each.leader, each.url, name, each) for name, each in members.items() if each and each.master_eligibility
    ]
    if not eligible:
        return Assignment()
    _, _, name, identity = min(eligible, key=lambda each: each[:3])
    return Assignment(name, identity)


class Leadership(msgspec.Struct, frozen=True):
    """The leader as this server knows it."""

    generation: int
    leader: Identity | None
    is_own: bool


class Election:
    """A member of the group. `on_change` is called in the thread of the election, after each election and each loss."""

    def __init__(
        self,
        config: AdminConfig,
        group: str,
        identity: Identity,
        session_timeout_ms: int,
        on_change: Callable[[Leadership | None], None],
    ) -> None:
        self._group = group
        self._identity = identity
        self._session_timeout_ms = session_timeout_ms
        self._on_change = on_change
        self._driver = AdminApiDriver(config, f"ottla-registry-{identity.port}")
        self._client = self._driver.client
        self._clock = self._driver.clock
        settings = GroupSettings(group, config.request_timeout_ms)
        self._finder = CoordinatorFinder(self._client, settings, self._driver.backoff, logging.LoggerAdapter(log))
        self._member_id = ""
        self._generation = -1
        self._is_leader = False
        self._confirmed = float("-inf")
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="ottla-registry-election", daemon=True)

    def start(self) -> None:
        """Join the group, in a thread."""
        self._thread.start()

    def has_live_session(self) -> bool:
        """Return True if a heartbeat was confirmed within the session timeout, so that no other server can lead."""
        return self._clock.monotonic() - self._confirmed < self._session_timeout_ms / 1000

    def close(self) -> None:
        """Leave the group, so that another server leads at once."""
        self._is_closing = True
        self._client.wakeup()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            while not self._is_closing:
                try:
                    self._take_part()
                except WakeupError:
                    pass
                except KafkaError as error:
                    self._handle_error(error)
                except (KafkaTimeoutError, OttlaError) as error:
                    log.warning("election failed group=%s: %s; retrying", self._group, error)
                    self._finder.mark_unknown(str(error))
                    self._pause(RETRY_SECONDS)
            self._leave()
        finally:
            with suppress(OttlaError):
                self._driver.close(1.0)

    def _pause(self, seconds: float) -> None:
        with suppress(OttlaError):  # the wakeup of `close`, or a broker that is not there
            self._client.run(self._client.wait_for_time(self._clock.monotonic() + seconds))

    def _request(self, message: Any, seconds: float = REQUEST_SECONDS) -> Any:
        """Return the response of the coordinator; raise KafkaError for its error."""
        deadline = Deadline.after(seconds, self._clock.monotonic())
        node = self._client.run(self._finder.await_node(deadline, f"group {self._group}"))
        future = self._client.send(node, message, timeout_ms=int(seconds * 1000))
        if not self._client.poll_until(future, deadline.at):
            raise KafkaTimeoutError(f"the coordinator of group {self._group} did not respond within {seconds:g} s")
        response = future.result(0).message
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
        if response.error_code:
            raise error_for(response.error_code, f"group {self._group}")
        return response

    def _take_part(self) -> None:
        """Join, hold an election, and send heartbeats until the group changes."""
        identity = msgspec.structs.replace(self._identity, leader=self._is_leader)
        joined = self._request(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._session_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=msgspec.json.encode(identity))],
            ),
            REQUEST_SECONDS + self._session_timeout_ms / 1000,
        )
        self._member_id, self._generation = joined.member_id, joined.generation_id
        parts: Sequence[SyncGroupRequestAssignment] = ()
        if joined.leader == joined.member_id:
            members = {each.member_id: read_identity(bytes(each.metadata)) for each in joined.members}
            chosen = msgspec.json.encode(elect(members))
            parts = [SyncGroupRequestAssignment(member_id=each, assignment=chosen) for each in members]
        asked = self._clock.monotonic()
        synced = self._request(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=parts,
            )
        )
        self._confirmed = asked
        self._handle_assignment(bytes(synced.assignment))
        while not self._is_closing:
            self._client.run(self._client.wait_for_time(self._clock.monotonic() + HEARTBEAT_SECONDS))
            asked = self._clock.monotonic()
            self._request(
                HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
            )
            self._confirmed = asked

    def _handle_assignment(self, assignment: bytes) -> None:
        try:
            result = msgspec.json.decode(assignment, type=Assignment)
        except msgspec.DecodeError as error:
            log.warning("the leader of group %s sent an assignment that cannot be read: %s", self._group, error)
            result = Assignment()
        self._is_leader = result.master == self._member_id
        log.info(
            "elected generation=%d leader=%s", self._generation, result.master_identity and result.master_identity.url
        )
        self._on_change(Leadership(self._generation, result.master_identity, self._is_leader))

    def _handle_error(self, error: KafkaError) -> None:
        """Prepare for the next attempt after an error of the coordinator."""
        if error.code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        if error.code not in REJOIN_CODES:
            if self._generation >= 0:
                log.warning("lost the membership group=%s: %s; joining again", self._group, error)
            self._is_leader, self._generation = False, -1
            self._on_change(None)
        if error.code in RESET_CODES:
            self._member_id = ""
        elif error.code not in REJOIN_CODES:
            self._finder.mark_unknown(str(error))
            self._pause(RETRY_SECONDS)

    def _leave(self) -> None:
        if not self._member_id:
            return
        with suppress(OttlaError):  # else the session expires
            self._request(
                LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=self._member_id)]), 1.0
            )


class GroupSettings(msgspec.Struct, frozen=True):
    """The settings that a CoordinatorFinder needs."""

    group_id: str
    request_timeout_ms: int
