"""The limits of the work that one request can cause."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.broker.state_machines.log_slices import read_slice
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.records.batch import iter_headers
from tests.broker.every_api import GROUP, KNOWN, SampleRequest
from tests.broker.in_process_broker import House

TEN_THOUSAND = 10_000


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    built = House()
    yield built
    built.close()


def test_a_backtracking_pattern_of_transactional_ids_is_answered_at_once(house: House) -> None:
    made = house.ask(SampleRequest(InitProducerIdRequest("a" * 30 + "!", 5000), 4), "admin")
    assert made.error_code == ErrorCode.NONE
    answers: list[list[str]] = []

    def ask() -> None:
        for pattern in ("(a+)+", "(a+)+!"):
            answer = house.ask(SampleRequest(ListTransactionsRequest(transactional_id_pattern=pattern), 2), "admin")
            answers.append([each.transactional_id for each in answer.transaction_states])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    assert answers == [[], ["a" * 30 + "!"]]


def test_a_pattern_with_many_simultaneous_states_is_rejected_early(house: House) -> None:
    for number in range(3):
        name = "".join(random.Random(number).choices("ab", k=20_000))
        assert not house.ask(SampleRequest(InitProducerIdRequest(name, 5000), 4), "admin").error_code
    request = ListTransactionsRequest(transactional_id_pattern=".*a.{900}.*b.{900}")
    begin = time.thread_time()
    answer = house.ask(SampleRequest(request, 2), "admin")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert time.thread_time() - begin < 20  # without a bound it takes minutes


def test_a_request_for_more_than_ten_thousand_partitions_in_total_is_rejected(house: House) -> None:
    topics = [CreatableTopic(f"many{number}", 1_000, 1) for number in range(11)]
    answer = house.ask(SampleRequest(CreateTopicsRequest(topics, 5000, True), 7), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert "at most 10000" in (answer.topics[0].error_message or "")
    answer = house.ask(SampleRequest(CreateTopicsRequest(topics[:10], 5000, True), 7), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}


def test_a_request_that_adds_more_than_ten_thousand_partitions_in_total_is_rejected(house: House) -> None:
    house.ask(SampleRequest(CreateTopicsRequest([CreatableTopic("other", 1, 1)], 5000), 7), "admin")
    wanted = [CreatePartitionsTopic(name, 6_000) for name in (KNOWN, "other")]
    answer = house.ask(SampleRequest(CreatePartitionsRequest(wanted, 5000, True), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}


def test_a_request_for_more_than_ten_thousand_acls_is_rejected_as_a_whole(house: House) -> None:
    rules = [AclCreation(2, f"t{number}", 3, "User:a", "*", 3, 3) for number in range(TEN_THOUSAND + 1)]
    answer = house.ask(SampleRequest(CreateAclsRequest(rules), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert "divide it into several" in (answer.results[0].error_message or "")
    answer = house.ask(SampleRequest(CreateAclsRequest(rules[:2_000]), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.NONE}


def test_filters_that_match_more_than_ten_thousand_acls_in_total_delete_none(house: House) -> None:
    rules = [AclCreation(2, f"gone{number}", 3, "User:gone", "*", 3, 3) for number in range(100)]
    house.ask(SampleRequest(CreateAclsRequest(rules), 3), "admin")
    matching = DeleteAclsFilter(2, None, 3, "User:gone", None, 1, 1)
    answer = house.ask(SampleRequest(DeleteAclsRequest([matching] * 101), 3), "admin")
    assert {each.error_code for each in answer.filter_results} == {ErrorCode.INVALID_REQUEST}
    answer = house.ask(SampleRequest(DeleteAclsRequest([matching]), 3), "admin")
    assert len(answer.filter_results[0].matching_acls) == 100


def test_a_resource_named_a_thousand_times_is_described_once(house: House) -> None:
    groups = house.ask(SampleRequest(DescribeGroupsRequest([GROUP] * 1000), 5), "admin").groups
    assert [each.group_id for each in groups] == [GROUP]
    resource = DescribeConfigsResource(4, "1", None)
    configs = house.ask(SampleRequest(DescribeConfigsRequest([resource] * 1000), 4), "admin").results
    assert [each.resource_name for each in configs] == ["1"]
    producers = house.ask(
        SampleRequest(DescribeProducersRequest([TopicRequest(KNOWN, [0] * 10)] * 100), 0), "admin"
    ).topics
    assert [(each.name, len(each.partitions)) for each in producers] == [(KNOWN, 1)]
    every = OffsetFetchRequestGroup(GROUP, topics=None)
    offsets = house.ask(SampleRequest(OffsetFetchRequest(groups=[every] * 1000), 9), "admin").groups
    assert [len(each.topics) for each in offsets] == [1]


def test_a_long_topic_name_is_not_repeated_for_each_partition(house: House) -> None:
    name = "x" * 30_000
    answer = house.ask(SampleRequest(DescribeProducersRequest([TopicRequest(name, list(range(1000)))]), 0), "admin")
    assert sum(len(each.error_message or "") for each in answer.topics[0].partitions) < 400_000


def test_topics_created_by_a_metadata_request_are_one_append_to_the_metadata_log(house: House) -> None:
    names = [f"auto{number}" for number in range(200)]
    before = house.node.metadata_log.end_offset
    answer = house.ask(SampleRequest(MetadataRequest([MetadataRequestTopic(name=name) for name in names]), 12), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}
    assert {each.name for each in answer.topics} == set(names)
    piece = house.node.metadata_log.read(before, 1 << 20)
    assert piece is not None
    assert [header.base_offset for _, header in iter_headers(read_slice(piece))] == [before]
