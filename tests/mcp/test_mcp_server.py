"""`ottla mcp`, called by the SDK's own client over standard input and output, against a broker."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer
from mcp.types import Tool

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.console.cluster import ConsoleCluster
from ottla.mcp import bounds
from ottla.mcp.server import READ_TOOLS, SCHEMA_TOOLS, WRITE_TOOLS, build_server
from ottla.schemas import Schema, SchemaRegistryClient
from tests.schemas.small_registry import small_registry

pytestmark = pytest.mark.xdist_group("mcp")

COUNT = 300
FIRST_MS = 1_767_225_600_000
LARGE = "x" * 10_000
PATIENCE = 60


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with records, large records, and a group with a lag of 100."""
    with Broker(log_retention_ms=-1) as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1, {"retention.ms": "-1"}), NewTopic("large", 1, 1)])
        with Producer(bootstrap_servers=servers) as producer:
            for n in range(COUNT):
                value = json.dumps({"id": n})
                producer.send("orders", value.encode(), key=b"k%d" % n, partition=n % 2, timestamp=FIRST_MS + n * 1000)
            for _ in range(80):
                producer.send("large", LARGE.encode(), headers=[("h", b"\xff")])
        with Consumer(bootstrap_servers=servers, group_id="billing") as consumer:
            consumer.commit({TopicPartition("orders", 0): 50, TopicPartition("orders", 1): 150})
        yield servers


class ToolFailedError(Exception):
    """The sentence of a tool that failed."""


class Tools:
    """A connection to a server. The SDK's client runs in a thread with an event loop."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> list[Tool]:
        return self._portal.call(self._client.list_tools).tools

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a tool, or raise its error."""
        return self.start(tool, **arguments).result(PATIENCE)

    def start(self, tool: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Start a call."""
        return self._portal.start_task_soon(self._call, tool, arguments)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments)
        if result.is_error:
            raise ToolFailedError(result.content[0].text)  # type: ignore[union-attr]
        return dict(result.structured_content or {})


@contextmanager
def connected(server: StdioServerParameters | MCPServer[Any]) -> Iterator[Tools]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield Tools(portal, client)


def command(*options: str) -> StdioServerParameters:
    """The command with which a program starts the server."""
    return StdioServerParameters(command=sys.executable, args=["-m", "ottla.cli.main", "mcp", *options])


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """A registry with one subject."""
    record = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
    with small_registry() as served:
        with SchemaRegistryClient(served.url) as client:
            client.register_schema("orders-value", Schema(record))
        yield served.url


@pytest.fixture(scope="module")
def reading(servers: str, registry: str) -> Iterator[Tools]:
    """A server that only reads."""
    with connected(command("-b", servers, "--registry", registry)) as tools:
        yield tools


@pytest.fixture(scope="module")
def writing(servers: str) -> Iterator[Tools]:
    """A server that may write, without a registry."""
    with connected(command("-b", servers, "--allow-writes")) as tools:
        yield tools


def test_only_reading_tools_are_offered_by_default(reading: Tools, servers: str) -> None:
    tools = reading.tools()
    assert tuple(tool.name for tool in tools) == (*READ_TOOLS, *SCHEMA_TOOLS)
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert all(tool.description and tool.description.endswith(".") for tool in tools)
    with pytest.raises(ToolFailedError, match="Unknown tool: create_topic"):
        reading.call("create_topic", topic="new")
    with Admin(bootstrap_servers=servers) as admin:
        assert "new" not in admin.list_topics()


def test_the_cluster_its_topics_groups_and_configs_are_described(reading: Tools) -> None:
    overview = reading.call("describe_cluster")
    assert len(overview["brokers"]) == 1
    topics = reading.call("list_topics", name_contains="ord")
    assert [(row["name"], row["partitions"]) for row in topics["topics"]] == [("orders", 2)]
    topic = reading.call("describe_topic", topic="orders")
    assert [(row["first"], row["end"]) for row in topic["partitions"]] == [(0, 150), (0, 150)]
    assert [config["name"] for config in topic["configs"]] == ["retention.ms"]
    groups = reading.call("list_consumer_groups")
    assert [(row["name"], row["lag"], row["members"]) for row in groups["groups"]] == [("billing", 100, 0)]
    group = reading.call("describe_consumer_group", group="billing")
    assert [(row["offset"], row["lag"]) for row in group["partitions"]] == [(50, 100), (150, 0)]
    configs = reading.call("describe_configs", kind="topic", name="orders")
    assert {"name": "retention.ms", "value": "-1", "source": "DYNAMIC_TOPIC_CONFIG"} in configs["configs"]
    everything = reading.call("describe_configs", kind="topic", name="orders", include_defaults=True)
    assert len(everything["configs"]) > len(configs["configs"])


def test_records_are_read_from_the_end_an_offset_or_a_time_and_found_by_text_or_key(
    reading: Tools, servers: str
) -> None:
    newest = reading.call("consume_messages", topic="orders", limit=2)
    assert [record["key"]["text"] for record in newest["records"]] == ["k299", "k298"]
    assert not newest["whole"]
    at = reading.call("consume_messages", topic="orders", start="offset", position=149, partition=1)
    assert [json.loads(record["value"]["text"]) for record in at["records"]] == [{"id": 299}]
    assert at["whole"]
    timed = reading.call("consume_messages", topic="orders", start="time", position=FIRST_MS + 297_500)
    assert [record["key"]["text"] for record in timed["records"]] == ["k298", "k299"]
    found = reading.call("search_messages", topic="orders", text='"id": 17}')
    assert [record["key"]["text"] for record in found["records"]] == ["k17"]
    keyed = reading.call("search_messages", topic="orders", key="k20", start="earliest")
    assert [(record["partition"], record["offset"]) for record in keyed["records"]] == [(0, 10)]
    assert keyed["looked_at"] == COUNT
    with Admin(bootstrap_servers=servers) as admin:
        assert [group.group_id for group in admin.list_consumer_groups()] == ["billing"]


def test_results_are_bounded_in_count_and_bytes(reading: Tools) -> None:
    most = reading.call(
        "consume_messages", topic="orders", start="earliest", limit=bounds.MOST_RECORDS, max_bytes=200_000
    )
    assert len(most["records"]) == bounds.MOST_RECORDS
    large = reading.call("consume_messages", topic="large", limit=80)
    first = large["records"][0]["value"]
    assert (len(first["text"]), first["bytes"], first["cut"]) == (bounds.MOST_FIELD_CHARACTERS, len(LARGE), True)
    assert len(json.dumps(large["records"])) <= bounds.RESULT_BYTES + 200
    assert large["cut"] == f"only {len(large['records'])} of 80 records fit into max_bytes = {bounds.RESULT_BYTES}"
    assert not large["whole"]
    one = reading.call("consume_messages", topic="large", limit=80, max_bytes=1)
    assert len(one["records"]) == 1  # so that a reader can go on


MISTAKES: dict[str, tuple[tuple[str, dict[str, Any]], str]] = {
    "limit": (
        ("consume_messages", {"topic": "orders", "limit": 101}),
        "invalid value 101 for limit: expected a number from 1 to 100",
    ),
    "no limit": (
        ("consume_messages", {"topic": "orders", "limit": 0}),
        "invalid value 0 for limit: expected a number from 1 to 100",
    ),
    "bytes": (
        ("consume_messages", {"topic": "orders", "max_bytes": 300_000}),
        "invalid value 300000 for max_bytes: expected a number from 1 to 262144",
    ),
    "start": (
        ("consume_messages", {"topic": "orders", "start": "now"}),
        "invalid value 'now' for start: expected earliest, latest, offset or time",
    ),
    "position": (
        ("consume_messages", {"topic": "orders", "start": "offset"}),
        "start=offset needs position, the offset from which to read, from 0 on",
    ),
    "partition": (
        ("consume_messages", {"topic": "orders", "partition": 2}),
        "topic orders has no partition 2, only 0 to 1",
    ),
    "topic": (("describe_topic", {"topic": "nowhere"}), "nowhere"),
    "group": (("describe_consumer_group", {"group": "nobody"}), "nobody"),
    "search": (("search_messages", {"topic": "orders"}), "there is nothing to search for"),
    "seconds": (("explain_rebalances", {"group": "billing", "seconds": 31}), "expected a number from 0 to 30"),
    "skip": (("list_topics", {"skip": -1}), "invalid value -1 for skip: expected a number from 0 to 1000000"),
    "kind": (
        ("describe_configs", {"kind": "user", "name": "x"}),
        "invalid value 'user' for kind: expected topic, broker or group",
    ),
    "missing": (("describe_topic", {}), "describe_topic needs the argument topic"),
    "type": (
        ("describe_topic", {"topic": 7}),
        "invalid value 7 for topic of describe_topic: input should be a valid string",
    ),
}


def test_mistakes_are_sentences(reading: Tools) -> None:
    for (tool, arguments), sentence in MISTAKES.values():
        with pytest.raises(ToolFailedError) as failure:
            reading.call(tool, **arguments)
        assert sentence in str(failure.value)
        assert "\n" not in str(failure.value)
        assert "Error executing" not in str(failure.value)


def test_writes_are_offered_on_request_and_bounded(writing: Tools, servers: str) -> None:
    assert {tool.name for tool in writing.tools()} == {*READ_TOOLS, *WRITE_TOOLS}
    assert writing.call("create_topic", topic="written", partitions=2) == {"created": "written", "partitions": 2}
    assert writing.call("produce_message", topic="written", value="v", key="k", partition=1) == {
        "partition": 1,
        "offset": 0,
    }
    preview = writing.call("reset_offsets", group="billing", topic="orders", to="earliest")
    assert [(row["new_offset"], row["read_again"]) for row in preview["partitions"]] == [(0, 50), (0, 150)]
    assert not preview["applied"]
    assert (writing.call("describe_consumer_group", group="billing"))["lag"] == 100
    writing.call("reset_offsets", group="billing", topic="orders", to="time", time_ms=FIRST_MS + 100_000, apply=True)
    assert (writing.call("describe_consumer_group", group="billing"))["lag"] == 200
    for tool, arguments, sentence in (
        (
            "create_topic",
            {"topic": "many", "partitions": 101},
            "invalid value 101 for partitions: expected a number from 1 to 100",
        ),
        (
            "produce_message",
            {"topic": "orders", "value": "x" * 70_000},
            "the value has 70000 bytes: expected at most 65536",
        ),
        ("produce_message", {"topic": "nowhere", "value": "x"}, "nowhere"),
        ("produce_message", {"topic": "orders", "value": "x", "partition": -5}, "invalid value -5 for partition"),
        (
            "reset_offsets",
            {"group": "g", "topic": "orders", "to": "time", "time_ms": 2**63},
            f"invalid value {2**63} for time_ms: expected a number from 0",
        ),
        (
            "consume_messages",
            {"topic": "orders", "start": "time", "position": 2**63},
            f"invalid value {2**63} for position: expected a number from 0",
        ),
        ("reset_offsets", {"group": "g", "topic": "orders", "to": "end"}, "expected earliest, latest or time"),
        ("reset_offsets", {"group": "g", "topic": "orders", "to": "time"}, "to=time needs time_ms"),
    ):
        with pytest.raises(ToolFailedError, match=sentence):
            writing.call(tool, **arguments)
    with Admin(bootstrap_servers=servers) as admin:
        assert "nowhere" not in admin.list_topics()


def test_a_rebalance_is_seen_and_explained(reading: Tools, servers: str) -> None:
    empty = reading.call("explain_rebalances", group="billing", seconds=0)
    assert empty["findings"][0].startswith("The group has no members")
    settings = {"bootstrap.servers": servers, "group.id": "moving", "partition.assignment.strategy": "range"}
    with Consumer(settings, client_id="steady") as steady, Consumer(settings, client_id="late") as late:
        steady.subscribe(["orders"])
        while not steady.assignment():
            steady.poll(0.1)
        watching = reading.start("explain_rebalances", group="moving", seconds=4)
        while not watching.done():
            late.subscribe(["orders"])
            while not late.assignment():
                steady.poll(0.1)
                late.poll(0.1)
            late.unsubscribe()
            while len(steady.assignment()) < 2:
                steady.poll(0.1)
    seen = watching.result()
    changes = [event["change"] for event in seen["events"]]
    assert any(change.startswith("late") and change.endswith("has joined") for change in changes)
    for part in (r"late left \d+ times and joined \d+ times", r"group\.instance\.id", "The assignor range stops all"):
        assert any(re.search(part, finding) for finding in seen["findings"]), (part, seen)


def test_schemas_are_described_if_a_registry_is_given(reading: Tools) -> None:
    subjects = reading.call("list_schemas")
    assert [row["name"] for row in subjects["subjects"]] == ["orders-value"]
    assert '"Order"' in reading.call("describe_schema", subject="orders-value")["schema"]
    with pytest.raises(ToolFailedError, match=r"^the schema registry: "):
        reading.call("describe_schema", subject="none")


def test_a_cluster_that_does_not_answer_is_a_sentence() -> None:
    cluster = ConsoleCluster({"bootstrap.servers": "127.0.0.1:1", "bootstrap.refused.timeout.ms": 1})
    with connected(build_server(cluster, None)) as tools, pytest.raises(ToolFailedError) as failure:
        tools.call("list_topics")
    cluster.close()
    assert str(failure.value).startswith("no Kafka broker at 127.0.0.1:1: connection refused")
