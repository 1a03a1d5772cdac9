from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest

from ottla.client.config.common_config import CommonConfig
from ottla.client.metadata.coordinators import FIRST_OF_COORDINATORS
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.connection_states import SLOW_SECONDS
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import ManualClock
from ottla.errors import NoBrokersAvailableError, UnsupportedVersionError
from ottla.model import Node
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from tests.client.fake_selector import FakeSelector

NODE = Node(1, "kafka.example.org", 9092)
BOOT = Node(-1, "boot.example.org", 9092)
ASKED = ListOffsetsRequest(replica_id=-1)


def all_versions() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.versions.first, max_version=api.versions.last)
        for api in APIS.values()
    ]


class Story:
    """A client, a manual clock, and a broker with responses that the test changes."""

    def __init__(self, servers: str = "boot.example.org:9092", **settings: Any) -> None:
        self.clock = ManualClock()
        self.api_versions: list[ApiVersion] = all_versions()
        self.answers: dict[type, Any] = {ListOffsetsRequest: ListOffsetsResponse()}
        self.selector = FakeSelector(self.clock, self.answer)
        config = CommonConfig(bootstrap_servers=tuple(servers.split(",")), **settings)
        self.metadata = Metadata(
            bootstrap_nodes(config.bootstrap_servers),
            max_age_ms=300_000,
            backoff=ExponentialBackoff(100, 1000, Random(1)),
        )
        self.client = NetworkClient(
            config,
            self.metadata,
            client_id="me",
            max_in_flight=2,
            clock=self.clock,
            random=Random(1),
            selector=cast(Selector, self.selector),
        )
        self.done: list[ClientResponse] = []

    def answer(self, header: RequestHeader, request: Any) -> Any:
        if type(request) in self.answers:
            return self.answers[type(request)]
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsResponse(api_keys=self.api_versions)
        if isinstance(request, MetadataRequest):
            broker = MetadataResponseBroker(node_id=NODE.node_id, host=NODE.host, port=NODE.port)
            return MetadataResponse(brokers=[broker])
        raise AssertionError(f"nobody expected {request}")

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    def poll(self, times: int = 1, timeout: float = 1.0) -> None:
        for _ in range(times):
            self.client.poll(timeout)

    def connect(self) -> None:
        """Be ready to send to NODE."""
        self.client.ready(NODE, self.now)
        for _ in range(10):
            self.poll(timeout=0)
            if self.client.is_ready(1, self.now):
                return
        raise AssertionError(self.client.describe_trouble())

    def send(self, **settings: Any) -> None:
        request = ClientRequest(1, ASKED, self.now, 30_000, self.done.append, **settings)
        self.client.send(request, self.now)


def test_a_node_is_ready_once_its_versions_are_known() -> None:
    story = Story()
    assert story.client.ready(NODE, story.now) is False
    story.connect()
    assert story.client.ready(NODE, story.now) is True


def test_a_response_is_delivered_to_the_sender_of_its_request() -> None:
    story = Story()
    story.connect()
    story.send()
    story.poll()
    assert [type(response.message) for response in story.done] == [ListOffsetsResponse]
    assert story.done[0].version == ListOffsetsRequest.VERSIONS.last
    assert story.client.in_flight_requests.count() == 0


def test_requests_carry_the_client_id() -> None:
    story = Story()
    story.connect()
    assert {header.client_id for _, header, _ in story.selector.requests} == {"me"}


def test_api_versions_is_retried_at_the_version_that_the_broker_supports() -> None:
    story = Story()
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])
    asked: list[int] = []

    def answer(header: RequestHeader, request: Any) -> Any:
        if header.api_key != ApiVersionsRequest.KEY:
            return story.answer(header, request)
        asked.append(header.api_version)
        return (refusal, 0) if header.api_version > 2 else ApiVersionsResponse(api_keys=story.api_versions)

    story.selector.handler = answer
    story.connect()
    assert sorted(set(asked)) == [2, ApiVersionsRequest.VERSIONS.last]


def test_a_kafka_too_old_for_a_request_fails_that_request_with_both_ranges() -> None:
    story = Story()
    story.api_versions = [v for v in all_versions() if v.api_key != ListOffsetsRequest.KEY]
    story.api_versions.append(ApiVersion(api_key=ListOffsetsRequest.KEY, min_version=0, max_version=0))
    story.connect()
    story.send()
    story.poll()
    error = story.done[0].error
    assert isinstance(error, UnsupportedVersionError)
    assert "kafka.example.org:9092 speaks ListOffsets 0 to 0" in str(error)


def test_a_broker_too_old_for_metadata_fails_the_waiters() -> None:
    story = Story()
    story.api_versions = []
    begun = story.now
    while story.metadata.fatal is None:
        story.poll()
    assert story.now == begun  # no caller waits first for a response that cannot arrive
    with pytest.raises(UnsupportedVersionError, match=r"boot\.example\.org:9092 does not have Metadata"):
        story.metadata.is_newer_than(0)


def test_a_lost_connection_fails_what_was_in_flight_and_renews_the_metadata() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = None
    story.poll(3, timeout=0)
    version = story.metadata.version
    story.send()
    story.send()
    story.selector.end(1, "the peer reset the connection")
    story.poll()
    assert [response.reason for response in story.done] == ["the peer reset the connection"] * 2
    assert not story.client.is_ready(1, story.now)
    story.poll(6, timeout=0.1)
    assert story.metadata.version > version


def test_metadata_in_flight_to_a_broker_that_comes_into_doubt_is_requested_again() -> None:
    story = Story()
    story.connect()
    story.poll(3, timeout=0)
    story.answers[MetadataRequest] = None  # its answer is on the way
    story.metadata.request_update()
    story.clock.advance(1)
    story.poll(timeout=0)
    node, header, _ = story.selector.requests[-1]
    story.client.doubt_broker(NODE.node_id)
    del story.answers[MetadataRequest]
    story.selector.answer_late(node, header, story.answer(header, MetadataRequest()))
    version, asked = story.metadata.version, len(story.selector.requests)
    story.poll(3, timeout=0.2)
    assert story.metadata.version == version + 2
    assert [type(request) for _, _, request in story.selector.requests[asked:]] == [MetadataRequest]


def test_an_unanswered_request_ends_its_connection_after_the_request_timeout() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = None
    story.send()
    sent = story.now
    while not story.done:
        story.poll(timeout=1)
    assert story.now - sent == pytest.approx(30, abs=0.1)
    assert story.done[0].reason == "no answer within request.timeout.ms = 30000"


def test_time_spent_in_user_code_does_not_count_towards_a_request_timeout() -> None:
    story = Story()
    story.connect()
    story.send()
    story.clock.advance(1000)
    story.poll(timeout=0)
    assert story.done[0].message is not None


@pytest.mark.behaviour("P5")
def test_no_more_than_the_limit_is_in_flight() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = None
    story.send()
    assert story.client.is_ready(1, story.now)
    story.send()
    assert not story.client.is_ready(1, story.now)


def test_a_request_that_expects_no_response_completes_when_it_is_sent() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = None
    story.send(expect_response=False)
    story.poll()
    assert [response.message for response in story.done] == [None]
    assert not story.done[0].disconnected


def test_an_answer_out_of_order_ends_the_connection() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = (999_999).to_bytes(4, "big") + bytes(30)
    story.send()
    story.poll()
    assert story.done[0].disconnected
    assert not story.client.is_ready(1, story.now)


def test_an_invalid_response_ends_only_its_connection() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = b"\xff" * 3
    story.send()
    story.poll()
    assert "ListOffsets" in (story.done[0].reason or "")


def test_a_throttled_client_waits() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = ListOffsetsResponse(throttle_time_ms=5000)
    story.send()
    story.poll()
    assert not story.client.is_ready(1, story.now)
    assert story.client.connection_delay(1, story.now) == pytest.approx(5)
    story.clock.advance(5)
    assert story.client.is_ready(1, story.now)


def test_an_unreachable_broker_is_retried_after_a_growing_backoff() -> None:
    story = Story()
    story.selector.refuse = "connection refused"
    attempts: list[float] = []
    while len(attempts) < 6:
        if story.client._states.can_connect(1, story.now):
            story.client.ready(NODE, story.now)
            attempts.append(story.now)
        story.poll(timeout=0.01)
    pauses = [after - before for before, after in pairwise(attempts)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > 4 * pauses[0]


def test_a_metadata_timeout_error_names_address_reason_and_setting() -> None:
    story = Story()
    story.selector.refuse = "connection refused"
    story.poll(3)
    text = str(story.client.unavailable_error(60_000, "max.block.ms"))
    for fact in ("60000 ms (max.block.ms)", "boot.example.org:9092 (from bootstrap.servers)", "connection refused"):
        assert fact in text


@pytest.mark.parametrize(
    "reason",
    [
        "this looks like HTTP, not Kafka's protocol",
        "a frame of 1008813135 bytes was announced, more than the 104857600 allowed",
    ],
)
def test_a_server_that_is_no_kafka_broker_fails_at_once(reason: str) -> None:
    story = Story()
    story.answers[ApiVersionsRequest] = None
    story.poll(2, timeout=0)
    story.selector.end(-1, reason)
    story.poll()
    with pytest.raises(NoBrokersAvailableError, match=r"not a Kafka broker: boot\.example\.org:9092"):
        story.metadata.is_newer_than(0)


def test_a_server_that_closes_without_a_response_is_retried_once_and_then_rejected_as_no_kafka_broker() -> None:
    story = Story()
    story.answers[ApiVersionsRequest] = None
    story.poll(2, timeout=0)
    story.selector.end(-1)
    story.poll()
    assert story.metadata.is_newer_than(0) is False
    story.clock.advance(1)
    story.poll(2, timeout=0)
    story.selector.end(-1)
    story.poll()
    with pytest.raises(NoBrokersAvailableError, match=r"not a Kafka broker: boot\.example\.org:9092"):
        story.metadata.is_newer_than(0)


def test_a_failure_that_may_pass_is_waited_for() -> None:
    story = Story()
    story.selector.refuse = "connection refused"
    story.poll(5)
    assert story.metadata.is_newer_than(0) is False
    story.selector.refuse = ""
    for _ in range(20):
        story.poll()
    assert story.metadata.version > 0


def test_an_idle_connection_is_closed_and_opened_again() -> None:
    story = Story(connections_max_idle_ms=10_000)
    story.connect()
    story.poll(3, timeout=0)
    story.clock.advance(20)
    story.poll(timeout=0)
    assert not story.client.is_ready(1, story.now)
    story.connect()


def test_a_connection_closed_by_the_client_is_no_failure_of_the_broker() -> None:
    story = Story()
    story.connect()
    story.answers[ListOffsetsRequest] = None
    story.send()
    story.client.disconnect(1, "of no more use")
    assert not story.client.ready(NODE, story.now), "a new connection begins, without a pause"
    story.poll(3, timeout=0)
    assert [response.reason for response in story.done] == ["of no more use"]
    assert not story.client.has_failed_login(1)
    assert story.client.is_ready(1, story.now)


def test_an_exception_in_a_response_handler_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.connect()
    request = ClientRequest(1, ASKED, story.now, 30_000, lambda response: 1 / 0)  # type: ignore[arg-type]
    story.client.send(request, story.now)
    story.send()
    story.poll()
    assert len(story.done) == 1
    assert "ZeroDivisionError" in caplog.text


def test_an_idle_client_does_not_spin() -> None:
    story = Story()
    story.poll(20, timeout=60)
    assert story.now > 60
    assert len(story.selector.waited) == 20


def lost(story: Story) -> set[int]:
    """Connect to the node, lose it, and return the nodes that the client tries from then on."""
    story.poll(6)
    assert story.metadata.cluster.nodes.keys() == {NODE.node_id}
    story.client.ready(NODE, story.now)
    story.poll(3)
    for channel in (NODE.node_id, BOOT.node_id):
        story.selector.end(channel, "gone")
    story.selector.refuse = "refused"
    seen: set[int] = set()
    for _ in range(200):
        story.poll(timeout=0.02)
        seen |= story.metadata.cluster.nodes.keys()
    return seen


def test_a_client_that_lost_all_brokers_rebootstraps() -> None:
    story = Story()
    assert lost(story) == {NODE.node_id, BOOT.node_id}
    story.selector.refuse = ""
    for _ in range(10):
        story.poll()
        story.clock.advance(1)
    assert story.metadata.cluster.nodes == {NODE.node_id: NODE}


def test_a_long_wait_for_the_first_answer_is_explained_once(caplog: pytest.LogCaptureFixture) -> None:
    story = Story("boot.example.org:9092,other.example.org:9092")
    story.selector.refuse = "connection refused"
    for _ in range(60):
        story.poll()
        story.clock.advance(1)
    lines = [text for text in caplog.messages if "no broker has answered" in text]
    assert len(lines) == 1
    assert "bootstrap.servers=boot.example.org:9092,other.example.org:9092 reason=" in lines[0]
    assert "boot.example.org:9092 (from bootstrap.servers): connection refused" in lines[0]
    assert lines[0].endswith("check the address, and that a broker runs there (ottla doctor)")


def test_a_broker_that_answers_in_time_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    for _ in range(60):
        story.poll()
        story.clock.advance(1)
    assert caplog.messages == []


def test_a_client_with_rebootstrap_disabled_keeps_its_known_brokers() -> None:
    assert lost(Story(metadata_recovery_strategy="none")) == {NODE.node_id}


def test_a_client_without_metadata_responses_rebootstraps_after_the_trigger_time() -> None:
    story = Story(metadata_recovery_rebootstrap_trigger_ms=60_000, request_timeout_ms=10_000)
    story.poll(6)
    assert story.metadata.cluster.nodes.keys() == {NODE.node_id}
    story.answers[MetadataRequest] = None
    story.metadata.request_update()
    seen: set[int] = set()
    for _ in range(100):
        story.poll()
        story.clock.advance(1)
        seen |= story.metadata.cluster.nodes.keys()
    assert BOOT.node_id in seen


def test_a_rebootstrap_required_error_makes_the_client_rebootstrap() -> None:
    story = Story()
    story.poll(6)
    story.answers[MetadataRequest] = MetadataResponse(error_code=129)
    story.metadata.request_update()
    for _ in range(10):
        story.poll()
        story.clock.advance(1)
    assert story.metadata.cluster.nodes.keys() == {BOOT.node_id}


def expectations(story: Story) -> list[tuple[str | None, int]]:
    """The cluster and the node that each ApiVersions request names."""
    asked = [request for _, _, request in story.selector.requests if isinstance(request, ApiVersionsRequest)]
    return [(each.cluster_id, each.node_id) for each in asked]


def story_of_cluster(**settings: Any) -> Story:
    """A client that knows the id of the cluster after its first response."""
    story = Story(**settings)
    broker = MetadataResponseBroker(node_id=NODE.node_id, host=NODE.host, port=NODE.port)
    story.answers[MetadataRequest] = MetadataResponse(brokers=[broker], cluster_id="c")
    story.poll(6)
    return story


def test_a_client_sends_the_expected_cluster_and_node_id_to_a_known_broker() -> None:
    story = story_of_cluster()
    story.connect()
    assert expectations(story) == [(None, -1), ("c", NODE.node_id)]


def test_a_client_expects_the_broker_that_is_the_coordinator_at_its_second_connection() -> None:
    story = story_of_cluster()
    coordinator = Node(FIRST_OF_COORDINATORS - NODE.node_id, NODE.host, NODE.port)
    story.client.ready(coordinator, story.now)
    story.poll(4, timeout=0)
    assert expectations(story)[-1] == ("c", NODE.node_id)


@pytest.mark.parametrize("settings", [{"metadata_cluster_check_enable": False}, {"metadata_recovery_strategy": "none"}])
def test_a_client_without_the_check_expects_nothing(settings: dict[str, Any]) -> None:
    story = story_of_cluster(**settings)
    story.connect()
    assert set(expectations(story)) == {(None, -1)}


def test_a_client_that_reaches_another_broker_rebootstraps() -> None:
    story = story_of_cluster()
    story.answers[ApiVersionsRequest] = ApiVersionsResponse(error_code=129)
    story.client.ready(NODE, story.now)
    for _ in range(10):
        story.poll(timeout=0)
        if story.metadata.cluster.nodes.keys() == {BOOT.node_id}:
            break
    assert story.metadata.cluster.nodes.keys() == {BOOT.node_id}
    assert not story.client.is_ready(NODE.node_id, story.now)

    del story.answers[ApiVersionsRequest]
    for _ in range(10):
        story.poll()
        story.clock.advance(1)
    assert story.metadata.cluster.nodes.keys() == {NODE.node_id}


def test_brokers_that_fail_repeatedly_are_logged_at_intervals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story()
    story.poll(6)
    begun = 0
    for _ in range(3):
        story.answers[MetadataRequest] = MetadataResponse(error_code=129)  # it is to begin again
        story.metadata.request_update()
        while story.metadata.cluster.nodes.keys() != {BOOT.node_id}:
            story.poll(timeout=0.02)
        begun += 1
        del story.answers[MetadataRequest]
        while story.metadata.cluster.nodes.keys() != {NODE.node_id}:
            story.poll(timeout=0.02)
    messages = [line for line in caplog.messages if "returning to bootstrap.servers" in line]
    assert (begun, len(messages)) == (3, 1)


def test_metadata_is_requested_from_a_second_broker_after_one_second_without_a_response() -> None:
    story = Story("boot.example.org:9092,other.example.org:9092")
    asked: list[float] = []

    def answer(header: RequestHeader, request: Any) -> Any:
        if not isinstance(request, MetadataRequest):
            return story.answer(header, request)
        asked.append(story.now)
        return None if len(asked) == 1 else story.answer(header, request)

    story.selector.handler = answer
    while story.metadata.version == 0:
        story.poll(timeout=30.0)
        assert story.now < 5
    assert len(asked) == 2
    assert asked[1] - asked[0] == pytest.approx(SLOW_SECONDS, abs=0.2)


@pytest.mark.parametrize(("timeout_ms", "fails"), [(1000, True), (-1, False)])
def test_addresses_that_all_refuse_connections_fail_after_the_configured_time(timeout_ms: int, *, fails: bool) -> None:
    story = Story("boot.example.org:9092,other.example.org:9092", bootstrap_refused_timeout_ms=timeout_ms)
    story.selector.refuse = "connection refused"
    while story.metadata.fatal is None and story.now < 10:
        story.poll(timeout=1.0)
    assert (story.metadata.fatal is not None) == fails
    if fails:
        assert isinstance(story.metadata.fatal, NoBrokersAvailableError)
        assert "no Kafka broker at boot.example.org:9092, other.example.org:9092: connection refused" in str(
            story.metadata.fatal
        )
        assert 1 <= story.now < 3
    story.selector.refuse = ""
    while story.metadata.version == 0:
        story.poll(timeout=1.0)
        assert story.now < 20
    assert story.metadata.fatal is None, "an answer takes it back"


@pytest.mark.parametrize(("timeout_ms", "fails"), [(1000, True), (0, False)])
def test_unresolvable_host_names_fail_after_the_configured_time(timeout_ms: int, *, fails: bool) -> None:
    story = Story("boot.example.org:9092,other.example.org:9092", bootstrap_resolve_timeout_ms=timeout_ms)
    story.selector.refuse = "cannot resolve the host name 'boot.example.org': unknown"
    while story.metadata.fatal is None and story.now < 10:
        story.poll(timeout=1.0)
    assert (story.metadata.fatal is not None) == fails
    if fails:
        assert isinstance(story.metadata.fatal, NoBrokersAvailableError)
        assert "cannot resolve boot.example.org, other.example.org within bootstrap.resolve.timeout.ms = 1000" in str(
            story.metadata.fatal
        )
        assert 1 <= story.now < 3
    story.selector.refuse = ""
    while story.metadata.version == 0:
        story.poll(timeout=1.0)
        assert story.now < 20
    assert story.metadata.fatal is None


def test_a_slow_address_is_waited_for_while_another_refuses() -> None:
    story = Story("boot.example.org:9092,other.example.org:9092", bootstrap_refused_timeout_ms=1000)
    story.poll(3, timeout=0)
    story.selector.end(-1, "connection refused")
    story.selector.handler = lambda header, request: None
    while story.now < 5:
        story.poll(timeout=1.0)
    assert story.metadata.fatal is None
