"""The table of what we speak."""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from ottla.protocol.schema import Message, Range


class Api(NamedTuple):
    """One kind of request and its answer."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    versions: Range
    """The versions we can read and write."""
    flexible: Range

    @property
    def advertised(self) -> Range:
        """The versions a broker says it speaks."""
        return ADVERTISED.get(self.key, self.versions)


ADVERTISED = {
    # librdkafka before 2.8 gives up compression when Produce does not begin at 0 (KAFKA-18659).
    ProduceRequest.KEY: Range(0, ProduceRequest.VERSIONS.last),
    # Version 6 (two-phase commit) is unstable in Kafka 4.3, which does not advertise it either.
    InitProducerIdRequest.KEY: Range(0, 5),
}


def api(request: type[Message], response: type[Message]) -> Api:
    """A line of the table."""
    name = request.__name__.removesuffix("Request")
    return Api(request.KEY, name, request, response, request.VERSIONS, request.FLEXIBLE)


APIS: dict[int, Api] = {
    line.key: line
    for line in (
        api(ProduceRequest, ProduceResponse),
        api(FetchRequest, FetchResponse),
        api(ListOffsetsRequest, ListOffsetsResponse),
        api(MetadataRequest, MetadataResponse),
        api(OffsetCommitRequest, OffsetCommitResponse),
        api(OffsetFetchRequest, OffsetFetchResponse),
        api(FindCoordinatorRequest, FindCoordinatorResponse),
        api(ApiVersionsRequest, ApiVersionsResponse),
        api(CreateTopicsRequest, CreateTopicsResponse),
        api(DeleteTopicsRequest, DeleteTopicsResponse),
        api(InitProducerIdRequest, InitProducerIdResponse),
    )
}
"""API key → what we know of it."""


def api_of(message: Message | type[Message]) -> Api:
    """The API that a request or response, or the class of one, belongs to."""
    return APIS[message.KEY]
