"""The cursor of a sensor of Dagster or Airflow: the id of each topic and the next offset of each partition, as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.errors import OttlaError
from ottla.model import TopicPartition


class TopicCursor(NamedTuple):
    """The positions of a sensor."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    """Ids differ between topics of the same name. Without an entry, the brokers have no topic ids."""

    def to_json(self) -> str:
        """Return the text that the orchestrator stores."""
        topics: dict[str, dict[str, Any]] = {}
        for tp, offset in sorted(self.offsets.items()):
            entry = topics.setdefault(tp.topic, {"id": self.topic_ids.get(tp.topic), "offsets": {}})
            entry["offsets"][str(tp.partition)] = offset
        return json.dumps(topics)

    def start_offsets(
        self, topic_ids: Mapping[str, str], first: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the next offset of each partition: a new partition, or one of a recreated topic, starts at its first record.

        Raises OttlaError if records were deleted before they were read.
        """
        starts = {}
        for tp in end:
            is_same = self.topic_ids.get(tp.topic) in (None, topic_ids.get(tp.topic))
            starts[tp] = offset = self.offsets[tp] if is_same and tp in self.offsets else first[tp]
            if not first[tp] <= offset <= end[tp]:
                raise OttlaError(
                    f"{tp}: the cursor is at offset {offset}, and the broker has {first[tp]} to {end[tp]}: records were deleted before "
                    "the sensor has read them; reset the cursor to continue"
                )
        return starts


def parse_cursor(text: str | None) -> TopicCursor | None:
    """Return the cursor; None before the first evaluation. Raises OttlaError for another text."""
    if not text:
        return None
    try:
        topics = json.loads(text)
        offsets = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, entry in topics.items()
            for partition, offset in entry["offsets"].items()
        }
        return TopicCursor(offsets, {topic: entry["id"] for topic, entry in topics.items() if entry["id"]})
    except (ValueError, TypeError, KeyError, AttributeError):
        example = '{"orders": {"id": null, "offsets": {"0": 42}}}'
        raise OttlaError(
            f"the cursor {text!r:.100} is not one of this sensor: expected {example}, or no cursor"
        ) from None
