"""Where the one broker of a cluster keeps its copies, where it has several directories. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.cluster.events import CopiesPlaced
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.machine import Decision, Reply
from ottla.protocol.schema import Message


def decide(topics: Mapping[str, Topic], event: CopiesPlaced) -> Decision[Message]:
    """A record for each copy that is elsewhere than the log says; one of a topic that is gone has none."""
    records: list[Message] = []
    for (name, index), directory in event.directories.items():
        topic = topics.get(name)
        if topic is not None and topic.partitions[index].directories != (directory,):
            records.append(PartitionChangeRecord(index, topic.topic_id, directories=[directory]))
    return Decision(tuple(records), (Reply(event.ticket, None),))
