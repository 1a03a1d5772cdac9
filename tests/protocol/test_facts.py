"""Ottla's declarations equal Kafka's definitions, except for the differences that are listed here with their reasons."""

from __future__ import annotations

import pytest

from ottla.protocol.apis import APIS, DECLARED, Api
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.schema import Message, Range
from tests.protocol.facts import (
    ABSENT,
    DIFFERENT,
    FOLDER,
    OLDER_FOLDER,
    definition,
    differences,
    field_differences_of,
)
from tests.protocol.values import ids

if not FOLDER.is_dir():
    pytest.skip(ABSENT, allow_module_level=True)

MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)]
RENAMED_IN_4_4 = {
    "StreamsGroupHeartbeatResponse": {"AcceptableRecoveryLag": "AcceptableRecoveryLagLegacy"},
    "TxnOffsetCommitRequest": {"GenerationId": "GenerationIdOrMemberEpoch"},
}
"""Fields with another name in Kafka 4.3."""
# Ours refuse values that only the versions of Kafka 4.4 can have.
DIFFERENT_FROM_4_3: dict[str, list[str]] = {
    "ShareFetchRequest": DIFFERENT["ShareFetchRequest"],
    "StreamsGroupHeartbeatResponse": ["v0: refuses ['topology_description_required'], Kafka set()"],
    "StreamsGroupDescribeRequest": ["v0: refuses ['include_topology_description'], Kafka set()"],
    "StreamsGroupDescribeResponse": [
        "v0.groups: refuses ['topology_description', 'topology_description_status'], Kafka set()"
    ],
}
"""The differences from Kafka 4.3 in the versions that it has."""
NEW_IN_4_4 = {"StreamsGroupTopologyDescriptionUpdate", "UnregisterController"}
NOT_MESSAGES = {
    # Headers, declared by `ottla.protocol.headers`.
    "RequestHeader",
    "ResponseHeader",
    # What is embedded in other messages and records, compared below or by the tests of those.
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "DefaultPrincipalData",
    # Records of logs, declared by `ottla.coordination.quorum` and `ottla.storage`.
    "AbortedTxn",
    "ControlRecordTypeSchema",
    "EndTxnMarker",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
}
"""Definitions of Kafka that are neither a request nor a response."""


@pytest.mark.parametrize("cls", MESSAGES, ids=ids)
def test_a_message_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, definition(f"wire/{cls.__name__}.json")) == DIFFERENT.get(cls.__name__, [])


def test_every_message_of_kafka_is_declared() -> None:
    theirs = {path.stem for path in FOLDER.glob("wire/*.json")}
    removed = {name for name in theirs if definition(f"wire/{name}.json")["validVersions"] == "none"}

    assert {cls.__name__ for cls in MESSAGES} == theirs - NOT_MESSAGES - removed


def test_every_api_of_kafka_is_declared_for_the_nodes_that_serve_it() -> None:
    requests = [definition(f"wire/{each.request.__name__}.json") for each in APIS.values()]

    assert {each["apiKey"] for each in requests} == DECLARED.keys()
    for facts in requests:
        assert DECLARED[facts["apiKey"]].to_controller == ("broker" not in facts["listeners"]), facts["name"]


@pytest.mark.skipif(not OLDER_FOLDER.is_dir(), reason=f"the definitions of Kafka 4.3 are not in {OLDER_FOLDER}")
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_the_versions_of_kafka_4_3_have_the_fields_that_it_gives_them(api: Api) -> None:
    if api.name in NEW_IN_4_4:
        assert not OLDER_FOLDER.joinpath(f"wire/{api.request.__name__}.json").exists()
        return
    for cls in (api.request, api.response):
        facts = definition(f"wire/{cls.__name__}.json", OLDER_FOLDER)
        theirs = Range.parse(facts["validVersions"])
        renamed = RENAMED_IN_4_4.get(cls.__name__, {})
        facts["fields"] = [{**each, "name": renamed.get(each["name"], each["name"])} for each in facts["fields"]]

        assert cls.VERSIONS.first == theirs.first
        assert cls.VERSIONS.last >= theirs.last
        assert field_differences_of(cls, facts, theirs) == DIFFERENT_FROM_4_3.get(cls.__name__, [])


@pytest.mark.parametrize("cls", [ConsumerProtocolSubscription, ConsumerProtocolAssignment], ids=ids)
def test_the_embedded_group_messages_have_the_fields_of_kafka(cls: type[Message]) -> None:
    assert differences(cls, {"apiKey": cls.KEY, **definition(f"wire/{cls.__name__}.json")}) == []


def test_a_wrong_declaration_is_detected() -> None:
    facts = definition("wire/FetchResponse.json")
    facts["fields"][1]["versions"] = "8+"
    facts["fields"][2]["ignorable"] = True

    assert [line.split(":")[0] for line in differences(FetchResponse, facts)] == ["v4", "v5", "v6", "v7"]
    assert differences(MetadataRequest, definition("wire/FetchRequest.json")) != []
