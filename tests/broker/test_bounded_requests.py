"""What one request may make a broker do, whatever it names and however often."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.broker.machines.runtime import read_slice
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
from tests.broker.every_api import GROUP, KNOWN, Asked
from tests.broker.house import House

TEN_THOUSAND = 10_000


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    built = House()
    yield built
    built.close()


def test_a_pattern_of_transactional_ids_that_would_go_back_for_ever_is_answered_at_once(house: House) -> None:
    made = house.ask(Asked(InitProducerIdRequest("a" * 30 + "!", 5000), 4), "admin")
    assert made.error_code == ErrorCode.NONE
    answers: list[list[str]] = []

    def ask() -> None:
        for pattern in ("(a+)+", "(a+)+!"):
            answer = house.ask(Asked(ListTransactionsRequest(transactional_id_pattern=pattern), 2), "admin")
            answers.append([each.transactional_id for each in answer.transaction_states])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    assert answers == [[], ["a" * 30 + "!"]]


def test_a_pattern_with_many_states_at_a_time_is_refused_before_it_takes_long(house: House) -> None:
    for number in range(3):
        name = "".join(random.Random(number).choices("ab", k=20_000))
        assert not house.ask(Asked(InitProducerIdRequest(name, 5000), 4), "admin").error_code
    request = ListTransactionsRequest(transactional_id_pattern=".*a.{900}.*b.{900}")
    begin = time.thread_time()
    answer = house.ask(Asked(request, 2), "admin")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert time.thread_time() - begin < 20  # without a bound it takes minutes


def test_topics_with_more_than_ten_thousand_partitions_together_are_refused(house: House) -> None:
    topics = [CreatableTopic(f"many{number}", 1_000, 1) for number in range(11)]
    answer = house.ask(Asked(CreateTopicsRequest(topics, 5000, True), 7), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert "at most 10000" in (answer.topics[0].error_message or "")
    answer = house.ask(Asked(CreateTopicsRequest(topics[:10], 5000, True), 7), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}


def test_topics_do_not_grow_by_more_than_ten_thousand_partitions_together(house: House) -> None:
    house.ask(Asked(CreateTopicsRequest([CreatableTopic("other", 1, 1)], 5000), 7), "admin")
    wanted = [CreatePartitionsTopic(name, 6_000) for name in (KNOWN, "other")]
    answer = house.ask(Asked(CreatePartitionsRequest(wanted, 5000, True), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}


def test_a_request_for_more_than_ten_thousand_rules_is_refused_and_makes_none(house: House) -> None:
    rules = [AclCreation(2, f"t{number}", 3, "User:a", "*", 3, 3) for number in range(TEN_THOUSAND + 1)]
    answer = house.ask(Asked(CreateAclsRequest(rules), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert "divide it into several" in (answer.results[0].error_message or "")
    answer = house.ask(Asked(CreateAclsRequest(rules[:2_000]), 3), "admin")
    assert {each.error_code for each in answer.results} == {ErrorCode.NONE}


def test_filters_that_match_more_than_ten_thousand_rules_together_delete_none(house: House) -> None:
    rules = [AclCreation(2, f"gone{number}", 3, "User:gone", "*", 3, 3) for number in range(100)]
    house.ask(Asked(CreateAclsRequest(rules), 3), "admin")
    matching = DeleteAclsFilter(2, None, 3, "User:gone", None, 1, 1)
    answer = house.ask(Asked(DeleteAclsRequest([matching] * 101), 3), "admin")
    assert {each.error_code for each in answer.filter_results} == {ErrorCode.INVALID_REQUEST}
    answer = house.ask(Asked(DeleteAclsRequest([matching]), 3), "admin")
    assert len(answer.filter_results[0].matching_acls) == 100


def test_a_thing_that_is_named_a_thousand_times_is_described_once(house: House) -> None:
    groups = house.ask(Asked(DescribeGroupsRequest([GROUP] * 1000), 5), "admin").groups
    assert [each.group_id for each in groups] == [GROUP]
    resource = DescribeConfigsResource(4, "1", None)
    configs = house.ask(Asked(DescribeConfigsRequest([resource] * 1000), 4), "admin").results
    assert [each.resource_name for each in configs] == ["1"]
    producers = house.ask(Asked(DescribeProducersRequest([TopicRequest(KNOWN, [0] * 10)] * 100), 0), "admin").topics
    assert [(each.name, len(each.partitions)) for each in producers] == [(KNOWN, 1)]
    every = OffsetFetchRequestGroup(GROUP, topics=None)
    offsets = house.ask(Asked(OffsetFetchRequest(groups=[every] * 1000), 9), "admin").groups
    assert [len(each.topics) for each in offsets] == [1]


def test_a_topics_name_as_long_as_a_request_is_not_repeated_for_each_partition(house: House) -> None:
    name = "x" * 30_000
    answer = house.ask(Asked(DescribeProducersRequest([TopicRequest(name, list(range(1000)))]), 0), "admin")
    assert sum(len(each.error_message or "") for each in answer.topics[0].partitions) < 400_000


def test_topics_that_a_client_only_names_are_made_by_one_change_of_the_metadata(house: House) -> None:
    names = [f"auto{number}" for number in range(200)]
    before = house.node.metadata_log.end_offset
    answer = house.ask(Asked(MetadataRequest([MetadataRequestTopic(name=name) for name in names]), 12), "admin")
    assert {each.error_code for each in answer.topics} == {ErrorCode.NONE}
    assert {each.name for each in answer.topics} == set(names)
    piece = house.node.metadata_log.read(before, 1 << 20)
    assert piece is not None
    assert [header.base_offset for _, header in iter_headers(read_slice(piece))] == [before]
