"""Fetches the metadata's log from the controllers, in a thread; what came is kept and acted on in the broker's loop.

One answer is under way to the loop at a time: the next question says where the log ends after it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from ottla.broker.controllers.node_errors import explain_unwritable_metadata
from ottla.broker.machines.observed_metadata import Prepared
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_errors import PeerRefused
from ottla.coordination.quorum.observer import (
    FETCH_VERSION,
    SNAPSHOT_VERSION,
    Address,
    Fail,
    LogEnd,
    Observer,
    Outcome,
    Retry,
)
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotResponse

log = logging.getLogger(__name__)
ANSWER_SECONDS = 2.0
"""`controller.quorum.fetch.timeout.ms`: who is silent for so long does not lead."""
AGAIN_SECONDS = 1.0
"""The pause after a failure that is the broker's own."""
DESCRIBE_CLUSTER_VERSION, CONTROLLERS = 1, 2


class MetadataFetcher:
    """Runs an `Observer`."""

    def __init__(
        self,
        observer: Observer,
        end: Callable[[], LogEnd],
        prepare: Callable[[Outcome], Prepared],
        keep: Callable[[Prepared], None],
        call_soon: Callable[[Callable[[], None]], None],
        fail: Callable[[OttlaError], None],
        connection: PeerConnection,
        on_leader: Callable[[], None],
    ) -> None:
        """`end` and `keep` are called in the loop, by `call_soon`; `prepare` before that, in the thread, as is `on_leader`, where there is a new one."""
        self._observer = observer
        self._end = end
        self._prepare = prepare
        self._keep = keep
        self._call_soon = call_soon
        self._fail = fail
        self._connection = connection
        self._on_leader = on_leader
        self._known = False
        """Whether a controller has answered: who has been let in once waits for it."""
        self._versions: dict[Address, int] = {}
        self._refusals: set[Address] = set()
        """Controllers that have not let us in, or were not to be believed, since one was last heard."""
        self._ends: SimpleQueue[LogEnd | None] = SimpleQueue()
        self._over = False
        self._stumbled = False
        """True if the last answer could not be acted on: the next fetch waits a while."""
        self._thread = threading.Thread(target=self._run, name="ottla-metadata", daemon=True)

    @property
    def leader(self) -> Address | None:
        """Where the active controller is, if that is known."""
        return self._observer.leader

    def start(self) -> None:
        self._ends.put(self._end())
        self._thread.start()

    def close(self) -> None:
        """Fetch no more, and wait for the thread; to be called in the loop."""
        self._over = True
        self._ends.put(None)
        self._connection.give_up()
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        try:
            while (end := self._ends.get()) is not None and not self._over:
                if self._stumbled:
                    self._stumbled = False
                    self._connection.wait(AGAIN_SECONDS)
                outcome = self._try_once(end)
                while isinstance(outcome, Retry) and not self._over:
                    if outcome.after_ms:
                        self._connection.wait(outcome.after_ms / 1000)
                    outcome = self._try_once(end)
                if isinstance(outcome, Fail):
                    self._fail(OttlaError(outcome.sentence))
                    return
                self._call_soon(lambda outcome=outcome: self._hand_over(outcome))  # type: ignore[misc]
        except OttlaError as error:
            self._fail(error)

    def _try_once(self, end: LogEnd) -> Prepared:
        """The outcome of a fetch. One that fails by an error of the broker's own is logged and retried."""
        try:
            return self._outcome(end)
        except OttlaError:
            raise
        except Exception:
            log.exception("a fetch of the cluster's metadata failed, and is retried")
            self._connection.wait(AGAIN_SECONDS)
            return self._observer.lost()

    def _outcome(self, end: LogEnd) -> Prepared:
        request, version = self._observer.request(end)
        answer = FetchSnapshotResponse if version == SNAPSHOT_VERSION else FetchResponse
        address = self._observer.address
        try:
            if answer is FetchResponse:
                version = min(version, self._spoken(address))
            heard = self._connection.ask(address, request, version, answer, ANSWER_SECONDS)
        except PeerRefused as error:
            return self._refused(address, error)
        except OttlaError as error:
            self._versions.pop(address, None)  # it may come back as another
            if not self._over:
                log.info("the controller at %s did not answer: %s", address, error)
            return self._observer.lost()
        assert isinstance(heard, FetchResponse | FetchSnapshotResponse)
        if heard.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return self._of_another_cluster(address)
        self._known = True
        self._refusals.clear()
        return self._prepare(self._answered(heard))

    def _answered(self, heard: FetchResponse | FetchSnapshotResponse) -> Outcome:
        before = self._observer.leader, self._observer.leader_epoch
        outcome = self._observer.answered(heard)
        if self._observer.leader is not None and (self._observer.leader, self._observer.leader_epoch) != before:
            self._on_leader()
        return outcome

    def _spoken(self, address: Address) -> int:
        """The newest Fetch that a controller knows; each is asked once."""
        if address not in self._versions:
            said = self._connection.ask(address, ApiVersionsRequest(), 0, ApiVersionsResponse, ANSWER_SECONDS)
            known = {each.api_key: each.max_version for each in said.api_keys}
            self._versions[address] = known.get(FetchRequest.KEY, FETCH_VERSION)
        return self._versions[address]

    def _of_another_cluster(self, address: Address) -> Outcome:
        """Say of which; the controller is asked. One that was put among others must not end this broker."""
        theirs = "another, of which it does not say the id"
        try:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            said = self._connection.ask(
                address, request, DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse, ANSWER_SECONDS
            )
            theirs = said.cluster_id or theirs
        except OttlaError as error:
            log.info("the controller at %s does not say of which cluster it is: %s", address, error)
        sentence = (
            f"cluster.id = {self._observer.cluster_id} in meta.properties, and the cluster of the controller at {address} is "
            f"{theirs}: look at controller.quorum.bootstrap.servers, or format an empty directory for that cluster"
        )
        return self._without(address, sentence, is_final=True)

    def _refused(self, address: Address, error: PeerRefused) -> Outcome:
        """Try the others; who is refused by all before it was ever heard has nothing to wait for."""
        return self._without(
            address, f"the controller at {address} does not let this broker in: {error}", is_final=not self._known
        )

    def _without(self, address: Address, sentence: str, *, is_final: bool) -> Outcome:
        """Try the others; Fail where it is final and all have said so."""
        is_news = address not in self._refusals
        self._refusals.add(address)
        if is_final and self._refusals.issuperset(self._observer.bootstrap):
            return Fail(sentence)
        if is_news:
            log.warning("%s", sentence)
        return self._observer.lost()

    def _hand_over(self, outcome: Prepared) -> None:
        """Keep what came, and let the thread ask again; runs in the loop."""
        if self._over:
            return
        try:
            self._keep(outcome)
        except OttlaError as error:
            self._fail(explain_unwritable_metadata("broker", error))
            return
        except Exception:
            log.exception("fetched metadata could not be acted on; fetching continues after what was kept")
            self._stumbled = True
        self._ends.put(self._end())
