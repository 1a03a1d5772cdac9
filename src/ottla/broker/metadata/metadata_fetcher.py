"""Fetches the metadata log from the controllers, for a broker without the controller role. Runs in the event loop.

    fetch ──► response ──► Observer (pure) ──► append, or truncate ──► apply ──► fetch …
                                        └────► a chunk of a snapshot ──► a disk thread writes it ──► fetch …

One request is in flight at a time. The next one states where the log ends after the response was handled. The first request
to a controller is ApiVersions, which gives the newest version of Fetch that both know. After a failure the next bootstrap
server is tried; a response that names the leader makes the `Observer` select that one.

A login that is rejected, or another cluster id, is logged once per controller. The broker stops only if all bootstrap servers
reject it: for a rejected login only before the first response to a fetch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.node_errors import explain_unwritable_metadata
from ottla.broker.metadata.observed_metadata import Prepared
from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.clock import Clock
from ottla.coordination.quorum.observer import (
    FETCH_VERSION,
    SNAPSHOT_VERSION,
    Address,
    Observer,
    Outcome,
    ReplicaEnd,
    Retry,
    StopObserver,
    WriteChunk,
)
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)
ANSWER_SECONDS = 2.0
"""`controller.quorum.fetch.timeout.ms`: a controller that is silent for so long does not lead."""
WARNING_SECONDS = 5.0
"""The time without an answer of any controller before the first warning about it."""
MOST_WARNING_SECONDS = 600.0
AGAIN_SECONDS = 1.0
"""The pause after a failure of the broker's own."""
DESCRIBE_CLUSTER_VERSION, CONTROLLERS = 1, 2
Submit = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]
"""Runs work on a disk thread, then calls the second argument in the loop, with the error if there was one."""


class Copy(Protocol):
    """The broker's copy of the metadata log."""

    def fetched_end(self) -> ReplicaEnd:
        """Return where the copy ends."""

    def prepare(self, outcome: Outcome) -> Prepared:
        """Write and read what takes long, on a disk thread."""

    def keep(self, outcome: Prepared) -> None:
        """Write what was fetched, and apply what is committed. OttlaError if the disk does not take it."""


class MetadataFetcher:
    """Runs an `Observer`. Belongs to the loop."""

    def __init__(
        self,
        observer: Observer,
        copy: Copy,
        connection: PeerConnection,
        submit: Submit,
        timers: Timers,
        clock: Clock,
        fail: Callable[[OttlaError], None],
        on_leader: Callable[[], None],
    ) -> None:
        """`submit` runs work on a disk thread; `on_leader` is called if another controller has become active."""
        self._observer = observer
        self._copy = copy
        self._connection = connection
        self._submit = submit
        self._timers = timers
        self._clock = clock
        self._fail = fail
        self._on_leader = on_leader
        self._has_answer = False
        """True once a controller has answered. From then on, the broker retries if controllers reject its login."""
        self._versions: dict[Address, int] = {}
        """The newest version of Fetch that each controller knows."""
        self._refusals: set[Address] = set()
        """Controllers that rejected this broker, or belong to another cluster, since the last successful response."""
        self._is_over = False
        self._reasons: dict[Address, str] = {}
        """The last failure of each controller since any of them answered."""
        self._silent_since = clock.monotonic()
        self._warning_pause = WARNING_SECONDS

    @property
    def leader(self) -> Address | None:
        """The address of the active controller, if it is known."""
        return self._observer.leader

    def start(self) -> None:
        self._fetch()

    def close(self) -> None:
        """Stop; a response that is under way is dropped."""
        self._is_over = True
        self._connection.close()

    def _fetch(self) -> None:
        if self._is_over:
            return
        try:
            self._send_fetch()
        except Exception:
            self._retry_after_error()

    def _retry_after_error(self) -> None:
        log.exception("a fetch of the cluster's metadata failed, and is retried")
        self._fetch_after(AGAIN_SECONDS)

    def _send_fetch(self) -> None:
        request, version = self._observer.request(self._copy.fetched_end())
        address = self._observer.address
        if version == SNAPSHOT_VERSION:
            self._send_request(address, request, version, FetchSnapshotResponse, self._handle_fetch)
        elif address in self._versions:
            version = min(version, self._versions[address])
            self._send_request(address, request, version, FetchResponse, self._handle_fetch)
        else:
            self._send_request(address, ApiVersionsRequest(), 0, ApiVersionsResponse, self._handle_versions)

    def _fetch_after(self, seconds: float) -> None:
        self._timers.schedule(self._clock.monotonic() + seconds, self._fetch)

    def _send_request(
        self,
        address: Address,
        request: Message,
        version: int,
        answer: type[Message],
        then: Callable[[Address, Any], None],
    ) -> None:
        """Send a request; `then` takes the response. After a failure the next controller is tried."""

        def done(said: Any) -> None:
            if self._is_over:
                return
            try:
                if isinstance(said, PeerRefused):
                    self._execute(self._handle_refusal(address, said))
                elif isinstance(said, PeerLost):
                    self._versions.pop(address, None)  # after a restart it may be another version
                    log.info("the controller at %s did not answer: %s", address, said)
                    self._record_silence(address, str(said))
                    self._execute(self._observer.handle_failure())
                else:
                    then(address, said)
            except Exception:
                self._retry_after_error()

        self._connection.send_request(Question(address, request, version, answer, done))

    def _handle_versions(self, address: Address, said: ApiVersionsResponse) -> None:
        known = {each.api_key: each.max_version for each in said.api_keys}
        self._versions[address] = known.get(FetchRequest.KEY, FETCH_VERSION)
        self._fetch()

    def _handle_fetch(self, address: Address, said: FetchResponse | FetchSnapshotResponse) -> None:
        if said.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            question = Question(
                address,
                request,
                DESCRIBE_CLUSTER_VERSION,
                DescribeClusterResponse,
                lambda reported: self._execute(self._report_other_cluster(address, reported)),
            )
            self._connection.send_request(question)
            return
        self._has_answer = True
        self._refusals.clear()
        self._end_silence(address)
        before = self._observer.leader, self._observer.leader_epoch
        outcome = self._observer.handle_response(said)
        if self._observer.leader is not None and (self._observer.leader, self._observer.leader_epoch) != before:
            self._on_leader()
        self._execute(outcome)

    def _record_silence(self, address: Address, reason: str) -> None:
        """Log that no controller answers; less and less often, up to once in `MOST_WARNING_SECONDS`."""
        self._reasons[address] = reason
        seconds = self._clock.monotonic() - self._silent_since
        if seconds < self._warning_pause:
            return
        self._warning_pause = min(seconds * 2, seconds + MOST_WARNING_SECONDS)
        reasons = "; ".join(f"{each.host}:{each.port}: {why}" for each, why in self._reasons.items())
        log.warning(
            "no controller has answered this broker for %.0f s: %s; start the controllers, or correct "
            "controller.quorum.bootstrap.servers",
            *(seconds, reasons),
        )

    def _end_silence(self, address: Address) -> None:
        if self._warning_pause > WARNING_SECONDS:
            log.warning("the controller at %s:%d answers this broker", address.host, address.port)
        self._reasons.clear()
        self._silent_since, self._warning_pause = self._clock.monotonic(), WARNING_SECONDS

    # outcomes

    def _execute(self, outcome: Outcome) -> None:
        if self._is_over:
            return
        match outcome:
            case StopObserver():
                self._stop(OttlaError(outcome.sentence))
            case Retry():
                self._fetch_after(outcome.after_ms / 1000)
            case WriteChunk():
                self._write_piece(outcome)
            case _:
                self._keep(outcome)

    def _write_piece(self, piece: WriteChunk) -> None:
        """Write a piece of a snapshot on a disk thread, and read the snapshot there if it is the last one."""
        prepared: list[Prepared] = []

        def work() -> None:
            prepared.append(self._copy.prepare(piece))

        def done(error: BaseException | None) -> None:
            if self._is_over:
                return
            if isinstance(error, OttlaError):
                self._stop(explain_unwritable_metadata("broker", error))
            elif error is not None:
                log.error("a piece of a snapshot could not be kept; it is fetched again", exc_info=error)
                self._fetch_after(AGAIN_SECONDS)
            elif isinstance(prepared[0], Retry):
                self._fetch_after(prepared[0].after_ms / 1000)
            else:
                self._keep(prepared[0])

        self._submit(work, done)

    def _keep(self, outcome: Prepared) -> None:
        """Apply what was fetched, and fetch what comes next."""
        try:
            self._copy.keep(outcome)
        except OttlaError as error:
            self._stop(explain_unwritable_metadata("broker", error))
        except Exception:
            log.exception("fetched metadata could not be acted on; fetching continues after what was kept")
            self._fetch_after(AGAIN_SECONDS)
        else:
            self._timers.schedule(self._clock.monotonic(), self._fetch)  # in the next turn: other requests come first

    def _stop(self, error: OttlaError) -> None:
        self._is_over = True
        self._fail(error)

    # controllers that refuse

    def _report_other_cluster(self, address: Address, said: Any) -> Outcome:
        """Report the other cluster. A controller of another cluster among the configured ones must not stop this broker."""
        theirs = "another one with an unknown id"
        if isinstance(said, DescribeClusterResponse):
            theirs = said.cluster_id or theirs
        else:
            log.info("the controller at %s did not return its cluster id: %s", address, said)
        sentence = (
            f"cluster.id = {self._observer.cluster_id} in meta.properties, and the cluster of the controller at {address} is "
            f"{theirs}: look at controller.quorum.bootstrap.servers, or format an empty directory for that cluster"
        )
        return self._report_failure(address, sentence, is_final=True)

    def _handle_refusal(self, address: Address, error: PeerRefused) -> Outcome:
        """Try the other controllers. A broker that all of them reject before its first fetch stops."""
        sentence = f"the controller at {address} does not let this broker in: {error}"
        return self._report_failure(address, sentence, is_final=not self._has_answer)

    def _report_failure(self, address: Address, sentence: str, *, is_final: bool) -> Outcome:
        """Try the other controllers; Fail if `is_final` and all of them have rejected this broker."""
        is_news = address not in self._refusals
        self._refusals.add(address)
        if is_final and self._refusals.issuperset(self._observer.bootstrap):
            return StopObserver(sentence)
        if is_news:
            log.warning("%s", sentence)
        return self._observer.handle_failure()
