"""Properties of every struct: comparison by fields, a repr in the form of a call, and no hash."""

from __future__ import annotations

import pytest

from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.schema import replace


def brokers(port: int) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=port)])


def test_structs_are_the_same_where_all_their_fields_are() -> None:
    assert brokers(1) == brokers(1)
    assert brokers(1) != brokers(2)
    others: list[object] = [FindCoordinatorResponse(), Coordinator(), ()]
    assert FindCoordinatorRequest() not in others


def test_a_struct_is_shown_as_the_call_that_makes_it() -> None:
    assert repr(MetadataResponseBroker(1, "h", 2)) == "MetadataResponseBroker(node_id=1, host='h', port=2, rack=None)"
    assert repr(SaslAuthenticateRequest(b"a secret")) == "SaslAuthenticateRequest([hidden])"


def test_a_struct_that_may_change_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(brokers(1))


def test_a_changed_copy_is_another_struct() -> None:
    assert replace(brokers(1), error_code=3).error_code == 3
    assert replace(brokers(1)) == brokers(1)
