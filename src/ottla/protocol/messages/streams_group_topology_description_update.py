"""StreamsGroupTopologyDescriptionUpdate: send the description of a Kafka Streams application's topology (KIP-1331)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, part, struct


@struct
class TopologyDescriptionNode:
    name: String = ""
    node_type: Int8 = 0
    """1 source, 2 processor, 3 sink."""
    source_topics: Sequence[String] = ()
    sink_topic: String | None = None
    """None if each record determines the topic."""
    stores: Sequence[String] = ()
    successors: Sequence[String] = ()


@struct
class TopologyDescriptionSubtopology:
    subtopology_id: String = ""
    nodes: Sequence[TopologyDescriptionNode] = ()


@struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = part(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = part(TopologyDescriptionNode)


@struct
class TopologyDescription:
    subtopologies: Sequence[TopologyDescriptionSubtopology] = ()
    global_stores: Sequence[TopologyDescriptionGlobalStore] = ()


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    group_id: String = ""
    member_id: String = ""
    topology_epoch: Int32 = 0
    topology_description: TopologyDescription = part(TopologyDescription)


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
