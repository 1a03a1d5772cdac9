"""Our declarations say what Kafka's own definitions say."""

from __future__ import annotations

import pytest

from ottla.protocol.apis import APIS
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.schema import Message
from tests.protocol.facts import ABSENT, FOLDER, definition, differences
from tests.protocol.values import ids

if not FOLDER.is_dir():
    pytest.skip(ABSENT, allow_module_level=True)


@pytest.mark.parametrize("cls", [cls for api in APIS.values() for cls in (api.request, api.response)], ids=ids)
def test_a_message_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, definition(f"wire/{cls.__name__}.json")) == []


@pytest.mark.parametrize("cls", [ConsumerProtocolSubscription, ConsumerProtocolAssignment], ids=ids)
def test_what_members_of_a_group_tell_each_other_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, {"apiKey": cls.KEY, **definition(f"wire/{cls.__name__}.json")}) == []


def test_a_wrong_declaration_would_be_noticed() -> None:
    facts = definition("wire/FetchResponse.json")
    facts["fields"][1]["versions"] = "8+"
    facts["fields"][2]["ignorable"] = True

    assert [line.split(":")[0] for line in differences(FetchResponse, facts)] == ["v4", "v5", "v6", "v7"]
    assert differences(MetadataRequest, definition("wire/FetchRequest.json")) != []
