"""The tools that change nothing. Docstrings and argument descriptions are what the language model reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ottla.client.admin import ConfigResource
from ottla.client.admin.group_timeline import GroupTimeline
from ottla.console.cluster import STARTS, ConsoleCluster
from ottla.console.record_view import RecordCondition
from ottla.errors import ConfigError
from ottla.mcp.bounds import (
    MOST_NUMBER,
    MOST_RECORDS,
    MOST_RESULT_BYTES,
    MOST_WATCH_SECONDS,
    RESULT_BYTES,
    bound_records,
    check_between,
    check_choice,
)
from ottla.mcp.rebalance_findings import find_causes

if TYPE_CHECKING:
    from ottla.console.schema_registry import ConsoleRegistry  # needs the extra `schemas`

GROUPS_PAGE = 25
PAUSE_SECONDS = 0.25
"""The time between two descriptions of a watched group."""
RESOURCES = ("topic", "broker", "group")

Limit = Annotated[int, Field(description=f"The most records to return: 1 to {MOST_RECORDS}.")]
MaxBytes = Annotated[int, Field(description=f"The most bytes of JSON to return: 1 to {MOST_RESULT_BYTES}.")]
Topic = Annotated[str, Field(description="The name of a topic.")]
Group = Annotated[str, Field(description="The name of a group (group.id).")]
Partition = Annotated[int | None, Field(description="Only this partition; all of them by default.")]
Start = Annotated[
    str,
    Field(
        description="latest: the newest records, the newest first. earliest, offset or time: the oldest from there on. offset and time need `position`."
    ),
]
Position = Annotated[
    int | None, Field(description="The offset, or the time in milliseconds since 1970, for start=offset or start=time.")
]


class ReadTools:
    """Queries to one cluster and its schema registry."""

    def __init__(self, cluster: ConsoleCluster, registry: ConsoleRegistry | None) -> None:
        self._cluster = cluster
        self._registry = registry

    def describe_cluster(self) -> dict[str, Any]:
        """Brokers with addresses and leaders, the number of topics, partitions and groups, and partitions that lack replicas or a leader."""
        return self._cluster.overview()

    def list_topics(
        self,
        name_contains: Annotated[str, Field(description="A part of the name; all topics by default.")] = "",
        skip: Annotated[int, Field(description="The number of topics to skip, for the next page.")] = 0,
    ) -> dict[str, Any]:
        """Topics with partitions, replicas and under-replicated partitions: 100 at a time, with the count of all."""
        return self._cluster.topics(name_contains, check_between("skip", skip, 0, 1_000_000))

    def describe_topic(self, topic: Topic) -> dict[str, Any]:
        """Partitions of a topic with leader, replicas, in-sync replicas, first offset and end offset; and the configs that the topic sets."""
        found = self._cluster.topic(topic)
        return {**found, "configs": [config for config in found["configs"] if not config["default"]]}

    def list_consumer_groups(
        self,
        name_contains: Annotated[str, Field(description="A part of the name; all groups by default.")] = "",
        skip: Annotated[int, Field(description="The number of groups to skip, for the next page.")] = 0,
    ) -> dict[str, Any]:
        """Consumer groups, share groups and streams groups with state, members and total lag: 25 at a time, with the count of all."""
        start = check_between("skip", skip, 0, 1_000_000)
        found = [row for row in self._cluster.groups()["groups"] if name_contains.lower() in row["name"].lower()]
        rows = []
        for row in found[start : start + GROUPS_PAGE]:
            one = self._cluster.group(row["name"])
            rows.append({**row, "members": len(one["members"]), "lag": one["lag"]})
        return {"count": len(found), "from": start, "groups": rows}

    def describe_consumer_group(self, group: Group) -> dict[str, Any]:
        """One group: state, assignor, coordinator, members, and offset, end offset and lag of each partition."""
        return self._cluster.group(group)

    def consume_messages(
        self,
        topic: Topic,
        start: Start = "latest",
        position: Position = None,
        partition: Partition = None,
        limit: Limit = 10,
        max_bytes: MaxBytes = RESULT_BYTES,
    ) -> dict[str, Any]:
        """Read records of a topic, without a group and without committing offsets. Values are JSON, text or hexadecimal."""
        return self._records(topic, start, position, partition, limit, max_bytes, RecordCondition())

    def search_messages(
        self,
        topic: Topic,
        text: Annotated[str, Field(description="A text that the key or the value contains.")] = "",
        key: Annotated[str, Field(description="The whole key.")] = "",
        start: Start = "latest",
        position: Position = None,
        partition: Partition = None,
        limit: Limit = 10,
        max_bytes: MaxBytes = RESULT_BYTES,
    ) -> dict[str, Any]:
        """Find records by a text that their key or value contains, or by their whole key. A search ends after five seconds; `whole` is then false."""
        if not text and not key:
            raise ConfigError("there is nothing to search for: pass text or key, or use consume_messages")
        return self._records(topic, start, position, partition, limit, max_bytes, RecordCondition(key, text))

    def describe_configs(
        self,
        kind: Annotated[str, Field(description="topic, broker or group.")],
        name: Annotated[str, Field(description="The name of the topic or group, or the id of the broker.")],
        include_defaults: Annotated[bool, Field(description="Also configs with their default values.")] = False,
    ) -> dict[str, Any]:
        """Configs of a topic, a broker or a group, with the source of each value. Passwords are never returned."""
        resource = ConfigResource(check_choice("kind", kind, RESOURCES), name)
        found = self._cluster.admin.describe_configs([resource])[resource]
        return {
            "configs": [
                {"name": entry.name, "value": entry.value, "source": entry.source}
                for entry in sorted(found.values(), key=lambda each: each.name)
                if include_defaults or entry.source != "DEFAULT_CONFIG"
            ]
        }

    def explain_rebalances(
        self,
        group: Group,
        seconds: Annotated[int, Field(description=f"How long to watch the group: 0 to {MOST_WATCH_SECONDS}.")] = 10,
    ) -> dict[str, Any]:
        """Watch a consumer group for some seconds: which members joined and left, which partitions moved, and likely causes of rebalances."""
        deadline = time.monotonic() + check_between("seconds", seconds, 0, MOST_WATCH_SECONDS)
        timeline, begin, events, assignor = GroupTimeline(), time.monotonic(), [], ""
        while True:
            described = self._cluster.admin.describe_consumer_groups([group])[group]
            assignor = described.partition_assignor or assignor
            after = round(time.monotonic() - begin, 1)
            events += [{"after_seconds": after, "change": line} for line in timeline.changes(described)]
            if time.monotonic() >= deadline:
                break
            time.sleep(PAUSE_SECONDS)
        causes = find_causes(described, assignor, [str(event["change"]) for event in events])
        return {
            "state": described.state,
            "members": len(described.members),
            "epoch": described.group_epoch,
            "events": events,
            "findings": causes or ["The group is stable, and no member joined or left while it was watched."],
        }

    def list_schemas(
        self,
        name_contains: Annotated[str, Field(description="A part of the subject; all subjects by default.")] = "",
        skip: Annotated[int, Field(description="The number of subjects to skip, for the next page.")] = 0,
    ) -> dict[str, Any]:
        """Subjects of the schema registry with type, newest version and compatibility: 100 at a time, with the count of all."""
        return self._known_registry().subjects(name_contains, check_between("skip", skip, 0, 1_000_000))

    def describe_schema(
        self,
        subject: Annotated[str, Field(description="The subject, such as orders-value.")],
        version: Annotated[int | None, Field(description="A version; the newest by default.")] = None,
    ) -> dict[str, Any]:
        """One version of a subject: its schema, its references, and the difference to the version before it."""
        return self._known_registry().subject(subject, version)

    def _known_registry(self) -> ConsoleRegistry:
        assert self._registry is not None, "tools of schemas exist only with a registry"
        return self._registry

    def _records(
        self,
        topic: str,
        start: str,
        position: int | None,
        partition: int | None,
        limit: int,
        max_bytes: int,
        wanted: RecordCondition,
    ) -> dict[str, Any]:
        check_choice("start", start, STARTS)
        check_between("limit", limit, 1, MOST_RECORDS)
        check_between("max_bytes", max_bytes, 1, MOST_RESULT_BYTES)
        if start in ("offset", "time") and (position is None or position < 0):
            raise ConfigError(f"start={start} needs position, the {start} from which to read, from 0 on")
        if position is not None:
            check_between("position", position, 0, MOST_NUMBER)
        if partition is not None:
            count = len(self._cluster.admin.describe_topics([topic])[topic].partitions)
            if not 0 <= partition < count:
                raise ConfigError(f"topic {topic} has no partition {partition}, only 0 to {count - 1}")
        values = None if self._registry is None else self._registry.values()
        found = self._cluster.records(topic, partition, (start, position or 0), wanted, limit, values)
        records, is_cut = bound_records(found["records"], max_bytes)
        note = {"cut": f"only {len(records)} of {len(found['records'])} records fit into max_bytes = {max_bytes}"}
        return {**found, "records": records, "whole": found["whole"] and not is_cut, **(note if is_cut else {})}
