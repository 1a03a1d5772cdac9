"""The tools that change something; they exist only with `--allow-writes`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ottla.console.cluster import ConsoleCluster
from ottla.errors import ConfigError
from ottla.mcp.bounds import MOST_NUMBER, MOST_PARTITION, MOST_PARTITIONS, check_between, check_choice, check_size
from ottla.model import EARLIEST, LATEST, TopicPartition

TARGETS = ("earliest", "latest", "time")


class WriteTools:
    """Changes of one cluster."""

    def __init__(self, cluster: ConsoleCluster) -> None:
        self._cluster = cluster

    def produce_message(
        self,
        topic: Annotated[str, Field(description="The name of a topic that exists.")],
        value: Annotated[str | None, Field(description="The value as text; null is a tombstone.")],
        key: Annotated[str | None, Field(description="The key as text.")] = None,
        partition: Annotated[int | None, Field(description="The partition; chosen by the key by default.")] = None,
    ) -> dict[str, Any]:
        """Send one record to a topic, and return its partition and offset."""
        if partition is not None:
            check_between("partition", partition, 0, MOST_PARTITION)
        return self._cluster.produce(topic, check_size("key", key), check_size("value", value), partition)

    def create_topic(
        self,
        topic: Annotated[str, Field(description="The name of the new topic.")],
        partitions: Annotated[int, Field(description=f"1 to {MOST_PARTITIONS}.")] = 1,
        replicas: Annotated[
            int, Field(description="The replicas of each partition; -1 for the broker's default.")
        ] = -1,
        configs: Annotated[dict[str, str] | None, Field(description="Configs, such as retention.ms.")] = None,
    ) -> dict[str, Any]:
        """Create a topic."""
        check_between("partitions", partitions, 1, MOST_PARTITIONS)
        self._cluster.create_topic(topic, partitions, replicas, configs or {})
        return {"created": topic, "partitions": partitions}

    def reset_offsets(
        self,
        group: Annotated[str, Field(description="The name of a group without running members.")],
        topic: Annotated[str, Field(description="The topic of the offsets that change.")],
        to: Annotated[str, Field(description="earliest, latest or time.")],
        time_ms: Annotated[int | None, Field(description="Milliseconds since 1970, for to=time.")] = None,
        apply: Annotated[bool, Field(description="False: only show what would change.")] = False,
    ) -> dict[str, Any]:
        """Set the committed offsets of a group, or with apply=false show for each partition what would be read again or skipped."""
        check_choice("to", to, TARGETS)
        if to == "time" and (time_ms is None or time_ms < 0):
            raise ConfigError("to=time needs time_ms, milliseconds since 1970")
        if time_ms is not None:
            check_between("time_ms", time_ms, 0, MOST_NUMBER)
        when = {"earliest": EARLIEST, "latest": LATEST}.get(to, time_ms or 0)
        preview = self._cluster.preview_reset(group, topic, when)
        if apply:
            self._cluster.reset_offsets(
                group,
                {TopicPartition(row["topic"], row["partition"]): row["new_offset"] for row in preview["partitions"]},
            )
        return {**preview, "applied": apply}
