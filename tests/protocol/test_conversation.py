"""Frames: the bytes of their headers, and the requests and responses that can be decoded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kio.schema.index import api_key_map

from ottla.errors import ErrorCode, ProtocolError, UnsupportedVersionError
from ottla.protocol.apis import APIS, DECLARED, ELSEWHERE, NOT_SERVED, SERVED, api_of
from ottla.protocol.conversation import (
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from ottla.protocol.errors import EncodeError
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import ListOffsetsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.schema import Range
from tests.protocol.codecs import joined


def test_a_request_before_flexible_versions_has_header_1() -> None:
    frame = joined(encode_request(MetadataRequest(topics=None), 1, 258, "me"))
    assert frame == b"\0\3\0\1\0\0\1\2\0\2me\xff\xff\xff\xff"


def test_a_flexible_request_keeps_the_old_client_id_and_adds_tags() -> None:
    frame = joined(encode_request(MetadataRequest(topics=None), 11, 258, "me"))
    assert frame == b"\0\3\0\x0b\0\0\1\2\0\2me\0\0\1\0\0"


def test_long_quotations_in_errors_are_truncated_and_nothing_else() -> None:
    quoting = DeletableTopicResult("t", error_message="é" * 16_384)
    answer = DeleteTopicsResponse(responses=[quoting, DeletableTopicResult("u", error_message="short")])
    _, read = decode_response(DeleteTopicsResponse, 6, memoryview(joined(encode_response(answer, 6, 1))))
    assert [result.error_message for result in read.responses] == ["é" * 1000 + " …", "short"]
    with pytest.raises(EncodeError, match="name: is too long"):
        encode_response(DeleteTopicsResponse(responses=[DeletableTopicResult("é" * 16_384)]), 6, 1)


def test_a_client_without_a_name_sends_null() -> None:
    frame = joined(encode_request(MetadataRequest(topics=None), 1, 1, None))
    assert frame[8:10] == b"\xff\xff"
    assert decode_header(memoryview(frame)) == (RequestHeader(3, 1, 1, None), 10)


def test_the_shortest_request_is_a_header_without_a_name() -> None:
    frame = memoryview(joined(encode_request(ApiVersionsRequest(), 0, 1, None)))
    assert (len(frame), decode_request(frame)) == (10, (RequestHeader(18, 0, 1, None), ApiVersionsRequest()))


def test_a_flexible_header_that_ends_before_its_tags_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode_header(memoryview(b"\0\3\0\x0b\0\0\0\7\xff\xff"))


def test_a_response_header_is_the_correlation_id_and_tags_where_flexible() -> None:
    assert joined(encode_response(MetadataResponse(), 0, 258)) == b"\0\0\1\2" + bytes(8)
    assert joined(encode_response(MetadataResponse(), 9, 258))[:5] == b"\0\0\1\2\0"


def test_the_header_of_an_api_versions_response_never_has_tags() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 13)])
    frame = joined(encode_response(response, 3, 258))
    assert frame == b"\0\0\1\2\0\0\2\0\3\0\0\0\x0d\0\0\0\0\0\0"
    assert decode_response(ApiVersionsResponse, 3, memoryview(frame)) == (258, response)


def test_a_message_is_decoded_as_it_was_encoded() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="flights")])
    header, heard = decode_request(memoryview(joined(encode_request(request, 9, 5, "me"))))
    assert header == RequestHeader(3, 9, 5, "me")
    assert heard == request


def test_tags_in_a_header_are_skipped() -> None:
    frame = b"\0\3\0\x0b\0\0\0\7\xff\xff\2\0\1x\x63\2yz\1\1\0\0"
    header, heard = decode_request(memoryview(frame))
    assert header.client_id is None
    assert heard == MetadataRequest(topics=[])


def test_a_too_new_api_versions_request_still_gives_its_header() -> None:
    frame = memoryview(b"\0\x12\0\x63\0\0\0\7\0\2me\0anything that version 99 may say")
    assert decode_header(frame)[0] == RequestHeader(18, 99, 7, "me")
    with pytest.raises(UnsupportedVersionError, match="ApiVersions v99: only versions 0-5 are supported"):
        decode_request(frame)
    assert decode_header(frame[:12])[0] == RequestHeader(18, 99, 7, "me"), "whatever headers have by then"


def test_an_answer_to_a_too_new_api_versions_request_is_read_as_version_0() -> None:
    response = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 3)])
    frame = joined(encode_response(response, 0, 7))
    assert decode_response(ApiVersionsResponse, 4, memoryview(frame)) == (7, response)


def test_no_other_answer_is_read_as_version_0_whatever_it_begins_with() -> None:
    throttle_time_ms = ErrorCode.UNSUPPORTED_VERSION << 16
    frame = joined(encode_response(MetadataResponse(throttle_time_ms=throttle_time_ms), 9, 7))
    assert decode_response(MetadataResponse, 9, memoryview(frame))[1].throttle_time_ms == throttle_time_ms


def test_an_old_produce_request_gives_its_header_too() -> None:
    frame = memoryview(b"\0\0\0\2\0\0\0\7\xff\xff\0\1\0\0\0\0")
    assert decode_header(frame)[0].api_version == 2
    with pytest.raises(UnsupportedVersionError, match="Produce v2"):
        decode_request(frame)


def test_an_unknown_api_is_rejected() -> None:
    for frame, key in ((b"GET / HTTP/1.1\r\n", 18245), (b"GE", 18245), (b"\xff\xff\0\0", -1)):
        with pytest.raises(ProtocolError, match=f"no API has key {key}; this is not a request"):
            decode_header(memoryview(frame))


@pytest.mark.parametrize("frame", [b"\0\3\0", b"G"])
def test_a_frame_too_short_for_a_header_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"a frame of {len(frame)} bytes is too short"):
        decode_header(memoryview(frame))


def test_a_client_id_that_is_not_there_is_refused() -> None:
    with pytest.raises(ProtocolError, match="client id"):
        decode_header(memoryview(b"\0\3\0\1\0\0\0\7\x7f\xffabc"))


@pytest.mark.parametrize("length", [b"\xff\xff", b"\xff\xfe", b"\x80\0"])
def test_any_length_of_a_client_id_below_zero_is_none_as_for_kafka(length: bytes) -> None:
    frame = memoryview(b"\0\3\0\1\0\0\0\7" + length + b"abc")
    assert decode_header(frame) == (RequestHeader(3, 1, 7, None), 10)


def test_a_client_may_have_an_empty_name() -> None:
    frame = memoryview(joined(encode_request(MetadataRequest(topics=None), 1, 1, "")))
    assert decode_header(frame) == (RequestHeader(3, 1, 1, ""), 10)


def test_of_a_name_that_is_no_utf_8_the_rest_is_read_as_by_kafka() -> None:
    frame = memoryview(b"\0\3\0\1\0\0\0\1\0\4B\xf6hm")  # as a client in C has it from a German Windows
    assert decode_header(frame)[0].client_id == "B\ufffdhm"


def test_a_name_that_no_answer_could_hold_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"client_id: no UTF-8, and 32769 bytes .* limit is 32767"):
        decode_header(memoryview(b"\0\3\0\1\0\0\0\1\x2a\xab" + b"\xff" * 0x2AAB))


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (b"", "0 bytes is too short for a request header"),
        (b"\x4d", "1 bytes is too short for a request header"),
        (b"\xff\xff", "no API has key -1; this is not a request"),
        (b"\0\3", "2 bytes is too short for a request header"),
        (b"GET / HTTP", "no API has key 18245; this is not a request"),
    ],
)
def test_a_frame_that_is_no_request_is_identified_by_its_first_two_bytes(frame: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        decode_header(memoryview(frame))


def test_the_body_of_an_unsupported_version_is_not_parsed() -> None:
    frame = b"\0\3\0\x63\0\0\0\1\0\2me"
    for rest in (b"\0", b"\xff\xff", b""):
        assert decode_header(memoryview(frame + rest)) == (RequestHeader(3, 99, 1, "me"), 12)


@pytest.mark.parametrize("size", [0, 3])
def test_an_answer_is_at_least_as_long_as_its_header(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a frame of {size} bytes is too short for a response"):
        decode_response(HeartbeatResponse, 0, memoryview(bytes(size)))
    with pytest.raises(ProtocolError, match="2 bytes are announced but 0 are left"):
        decode_response(HeartbeatResponse, 0, memoryview(bytes(4)))


def test_bytes_after_the_message_are_refused() -> None:
    frame = joined(encode_request(MetadataRequest(topics=None), 1, 1, None)) + b"?"
    with pytest.raises(ProtocolError, match="MetadataRequest v1 cannot be read: 1 bytes are left over at its end"):
        decode_request(memoryview(frame))


def test_an_error_in_a_message_names_its_field() -> None:
    frame = memoryview(joined(encode_request(MetadataRequest([MetadataRequestTopic(name="abc")]), 1, 1, None)))
    with pytest.raises(ProtocolError, match=r"MetadataRequest v1 cannot be read: topics\[0\].name: 3 bytes are"):
        decode_request(frame[:-1])


def test_a_version_that_we_do_not_have_cannot_be_sent() -> None:
    with pytest.raises(UnsupportedVersionError, match="ProduceRequest has versions 3-13, not 2"):
        encode_request(ProduceRequest(), 2, 1, None)


def test_a_client_id_that_is_too_long_for_its_length_field_is_refused() -> None:
    with pytest.raises(EncodeError, match="does not fit a request header"):
        encode_request(MetadataRequest(), 1, 1, "x" * 40_000)


def test_the_table_knows_requests_and_responses() -> None:
    assert api_of(MetadataRequest) is api_of(MetadataResponse()) is APIS[3]
    assert APIS[3].name == "Metadata"
    assert APIS[3].versions == Range(0, 13)
    assert 9 in APIS[3].flexible
    assert 8 not in APIS[3].flexible


def test_each_line_of_the_table_has_the_key_and_the_name_of_its_messages() -> None:
    for key, api in APIS.items():
        assert (key, api.response.KEY) == (api.key, api.key)
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
        assert (api.versions, api.flexible) == (api.response.VERSIONS, api.response.FLEXIBLE)


def test_messages_are_imported_on_demand() -> None:
    tell = (
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('ottla.protocol.messages.')))"
    )
    story = f"import sys; from ottla.protocol.apis import APIS; {tell}; 0 in APIS; APIS[10].request; {tell}"
    printed = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=True).stdout
    assert printed == "\nfind_coordinator\n"


def test_a_key_that_no_api_has_is_not_in_the_table() -> None:
    assert 999 not in APIS
    with pytest.raises(KeyError):
        APIS[999]


def test_the_table_has_the_versions_of_each_message_file() -> None:
    assert {key: each.versions for key, each in DECLARED.items()} == {key: APIS[key].versions for key in APIS}
    assert all(key == each.key for key, each in DECLARED.items())


def test_requests_to_controllers_are_declared_and_not_served() -> None:
    assert {DECLARED[key].name for key in DECLARED.keys() - SERVED.keys() - NOT_SERVED.keys()} == {
        "AlterPartition",
        "Envelope",
        "FetchSnapshot",
        "BrokerRegistration",
        "BrokerHeartbeat",
        "AllocateProducerIds",
        "ControllerRegistration",
        "AssignReplicasToDirs",
        "Vote",
        "BeginQuorumEpoch",
        "EndQuorumEpoch",
        "UpdateRaftVoter",
    }
    frame = memoryview(joined(encode_request(BrokerHeartbeatRequest(7), 2, 1, None)))
    with pytest.raises(ProtocolError, match=r"this broker does not serve BrokerHeartbeat \(API key 63\)"):
        decode_request(frame)
    assert decode_request(frame, DECLARED)[1] == BrokerHeartbeatRequest(7)


def test_every_declared_api_is_served() -> None:
    assert NOT_SERVED == {}


def test_apis_that_are_not_served_have_the_names_of_kafka() -> None:
    taken_away = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown"}
    newer = {93: "StreamsGroupTopologyDescriptionUpdate", 94: "UnregisterController"}
    names = {key: "".join(map(str.capitalize, name.split("_"))) for key, name in api_key_map.items()}
    assert dict(ELSEWHERE) == {key: (taken_away | newer | names)[key] for key in ELSEWHERE}
    assert sorted(ELSEWHERE.keys() | SERVED.keys()) == [*range(95)]


def test_the_supported_versions_equal_those_of_kafka() -> None:
    assert DECLARED[ProduceRequest.KEY].advertised == Range(0, 13)
    assert DECLARED[InitProducerIdRequest.KEY].advertised == Range(0, 5)
    assert DECLARED[ListOffsetsRequest.KEY].advertised == Range(1, 11)
