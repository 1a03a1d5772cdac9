"""A request of each kind that names known resources and does not affect the results of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct

from ottla.protocol.messages import (
    alter_configs,
    delete_share_group_state,
    incremental_alter_configs,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    write_share_group_state,
)
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntryData
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest, EntityData
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.messages.describe_topic_partitions import TopicRequest as NamedTopic
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from ottla.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from ottla.protocol.schema import Message

KNOWN, ABSENT = "known", "absent"
"""Topics: one is there, one is not."""
GROUP, TRANSACTIONAL_ID = "readers", "writer"
"""A group with a commit for the known topic, and an unused transactional id."""
TOPIC_CONFIG, BROKER_CONFIG = ("retention.ms", "1000000"), ("log.cleaner.threads", "1")


class SampleRequest(NamedTuple):
    """A request in a version."""

    request: Message
    version: int


def both(make: Callable[[str], Any]) -> list[Any]:
    """About the topic that is there and the one that is not."""
    return [make(KNOWN), make(ABSENT)]


def every_api(topic_id: UUID, records: bytes) -> dict[str, SampleRequest]:
    """By a name that begins with the API's."""
    member = (GROUP, 7, "nobody")
    return {
        "ApiVersions": SampleRequest(ApiVersionsRequest("a", "1"), 4),
        "Produce": SampleRequest(
            ProduceRequest(
                None,
                -1,
                5000,
                both(lambda name: TopicProduceData(name, partition_data=[PartitionProduceData(0, records)])),
            ),
            11,
        ),
        "Produce by id": SampleRequest(
            ProduceRequest(
                None,
                -1,
                5000,
                [
                    TopicProduceData(topic_id=each, partition_data=[PartitionProduceData(0, records)])
                    for each in (topic_id, UUID(int=7))
                ],
            ),
            13,
        ),
        "Fetch": SampleRequest(
            FetchRequest(
                max_wait_ms=0,
                session_epoch=-1,
                topics=both(lambda name: FetchTopic(name, partitions=[FetchPartition(0, fetch_offset=0)])),
            ),
            12,
        ),
        "Fetch by id": SampleRequest(
            FetchRequest(
                max_wait_ms=0,
                session_epoch=-1,
                topics=[
                    FetchTopic(topic_id=each, partitions=[FetchPartition(0, fetch_offset=0)])
                    for each in (topic_id, UUID(int=7))
                ],
            ),
            17,
        ),
        "ListOffsets": SampleRequest(
            ListOffsetsRequest(-1, 0, both(lambda name: ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, -1)]))), 7
        ),
        "OffsetForLeaderEpoch": SampleRequest(
            OffsetForLeaderEpochRequest(
                -1, both(lambda name: OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, -1, 0)]))
            ),
            4,
        ),
        "DeleteRecords": SampleRequest(
            DeleteRecordsRequest(both(lambda name: DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)])), 5000), 2
        ),
        "Metadata": SampleRequest(
            MetadataRequest(
                both(lambda name: MetadataRequestTopic(name=name)),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            ),
            12,
        ),
        "Metadata of all": SampleRequest(MetadataRequest(None, include_topic_authorized_operations=True), 12),
        "Metadata by id": SampleRequest(
            MetadataRequest(
                [MetadataRequestTopic(each, None) for each in (topic_id, UUID(int=7))], allow_auto_topic_creation=False
            ),
            12,
        ),
        "Metadata of the cluster": SampleRequest(MetadataRequest([], include_cluster_authorized_operations=True), 10),
        "DescribeCluster": SampleRequest(DescribeClusterRequest(include_cluster_authorized_operations=True), 1),
        "DescribeTopicPartitions": SampleRequest(DescribeTopicPartitionsRequest(both(NamedTopic)), 0),
        "DescribeTopicPartitions of all": SampleRequest(DescribeTopicPartitionsRequest(), 0),
        "DescribeQuorum": SampleRequest(
            DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]), 2
        ),
        "DescribeLogDirs": SampleRequest(DescribeLogDirsRequest(), 4),
        "AlterReplicaLogDirs": SampleRequest(
            AlterReplicaLogDirsRequest([AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(KNOWN, [0])])]), 2
        ),
        "ElectLeaders": SampleRequest(ElectLeadersRequest(0, [TopicPartitions(KNOWN, [0])]), 2),
        "AlterPartitionReassignments": SampleRequest(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(KNOWN, [ReassignablePartition(0, None)])]), 0
        ),
        "ListPartitionReassignments": SampleRequest(ListPartitionReassignmentsRequest(), 0),
        "UpdateFeatures": SampleRequest(
            UpdateFeaturesRequest(60000, [FeatureUpdateKey("no.such.feature", 3)], True), 1
        ),
        "UnregisterBroker": SampleRequest(UnregisterBrokerRequest(77), 0),
        "UnregisterController": SampleRequest(UnregisterControllerRequest(77), 0),
        "AddRaftVoter": SampleRequest(AddRaftVoterRequest(None, 100, 77), 1),
        "RemoveRaftVoter": SampleRequest(RemoveRaftVoterRequest(None, 77), 0),
        "CreateTopics": SampleRequest(CreateTopicsRequest([CreatableTopic(ABSENT, 1, 1)], 5000, True), 7),
        "DeleteTopics": SampleRequest(DeleteTopicsRequest([DeleteTopicState(ABSENT)], timeout_ms=5000), 6),
        "DeleteTopics by id": SampleRequest(
            DeleteTopicsRequest([DeleteTopicState(None, UUID(int=7))], timeout_ms=5000), 6
        ),
        "CreatePartitions": SampleRequest(
            CreatePartitionsRequest(both(lambda name: CreatePartitionsTopic(name, 2)), 5000, True), 3
        ),
        "DescribeConfigs": SampleRequest(
            DescribeConfigsRequest(
                [
                    DescribeConfigsResource(2, KNOWN, ["retention.ms"]),
                    DescribeConfigsResource(2, ABSENT, ["retention.ms"]),
                    DescribeConfigsResource(32, GROUP, []),
                    DescribeConfigsResource(4, "1", ["log.cleaner.threads"]),
                ]
            ),
            4,
        ),
        "AlterConfigs": SampleRequest(
            alter_configs.AlterConfigsRequest(
                [
                    alter_configs.AlterConfigsResource(2, KNOWN, [alter_configs.AlterableConfig(*TOPIC_CONFIG)]),
                    alter_configs.AlterConfigsResource(32, GROUP, []),
                    alter_configs.AlterConfigsResource(4, "", []),
                ],
                True,
            ),
            2,
        ),
        "IncrementalAlterConfigs": SampleRequest(
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                [
                    incremental_alter_configs.AlterConfigsResource(
                        2, KNOWN, [incremental_alter_configs.AlterableConfig("retention.ms", 0, "1000")]
                    ),
                    incremental_alter_configs.AlterConfigsResource(32, GROUP, []),
                    incremental_alter_configs.AlterConfigsResource(4, "", []),
                ],
                True,
            ),
            1,
        ),
        "GetTelemetrySubscriptions": SampleRequest(GetTelemetrySubscriptionsRequest(), 0),
        "PushTelemetry": SampleRequest(PushTelemetryRequest(), 0),
        "ListConfigResources": SampleRequest(ListConfigResourcesRequest([2]), 1),
        "FindCoordinator of a group": SampleRequest(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4),
        "FindCoordinator of an id": SampleRequest(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTIONAL_ID]), 4
        ),
        "FindCoordinator of one": SampleRequest(FindCoordinatorRequest(GROUP, 0), 3),
        "JoinGroup": SampleRequest(
            JoinGroupRequest(GROUP, 10000, 10000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]), 7
        ),
        "SyncGroup": SampleRequest(SyncGroupRequest(*member, None, "consumer", "range"), 5),
        "Heartbeat": SampleRequest(HeartbeatRequest(*member), 4),
        "LeaveGroup": SampleRequest(LeaveGroupRequest(GROUP, members=[MemberIdentity("nobody")]), 5),
        "ConsumerGroupHeartbeat": SampleRequest(
            ConsumerGroupHeartbeatRequest(
                "newer", "nobody", 5, subscribed_topic_names=[KNOWN], rebalance_timeout_ms=5000, topic_partitions=[]
            ),
            0,
        ),
        "ShareGroupHeartbeat": SampleRequest(ShareGroupHeartbeatRequest("sharers", "nobody", 5, None, [KNOWN]), 1),
        "ShareGroupDescribe": SampleRequest(ShareGroupDescribeRequest(["nobodys"], True), 1),
        "ShareFetch": SampleRequest(
            share_fetch.ShareFetchRequest(
                "sharers",
                "nobody",
                0,
                topics=[share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(0)])],
            ),
            2,
        ),
        "ShareAcknowledge": SampleRequest(share_acknowledge.ShareAcknowledgeRequest("sharers", "nobody", 0), 2),
        "DescribeShareGroupOffsets": SampleRequest(
            DescribeShareGroupOffsetsRequest(
                [
                    DescribeShareGroupOffsetsRequestGroup(
                        "sharers", both(lambda name: DescribeShareGroupOffsetsRequestTopic(name, [0]))
                    )
                ]
            ),
            1,
        ),
        "AlterShareGroupOffsets": SampleRequest(
            AlterShareGroupOffsetsRequest(
                "altered",  # which this creates
                both(
                    lambda name: AlterShareGroupOffsetsRequestTopic(
                        name, [AlterShareGroupOffsetsRequestPartition(0, 3)]
                    )
                ),
            ),
            0,
        ),
        "DeleteShareGroupOffsets": SampleRequest(
            DeleteShareGroupOffsetsRequest("nobodys", both(DeleteShareGroupOffsetsRequestTopic)), 0
        ),
        "StreamsGroupHeartbeat": SampleRequest(
            StreamsGroupHeartbeatRequest(
                "streamers",
                "nobody",
                0,
                rebalance_timeout_ms=5000,
                topology=Topology(0, [Subtopology("0", [KNOWN])]),
                process_id="p",
            ),
            1,
        ),
        "StreamsGroupDescribe": SampleRequest(StreamsGroupDescribeRequest(["nobodys"], True), 1),
        "StreamsGroupTopologyDescriptionUpdate": SampleRequest(
            StreamsGroupTopologyDescriptionUpdateRequest("streamers", "nobody", 0), 0
        ),
        "InitializeShareGroupState": SampleRequest(
            initialize_share_group_state.InitializeShareGroupStateRequest(
                "sharers",
                [
                    initialize_share_group_state.InitializeStateData(
                        topic_id, [initialize_share_group_state.PartitionData(0, 5, 3)]
                    )
                ],
            ),
            0,
        ),
        "ReadShareGroupState": SampleRequest(
            read_share_group_state.ReadShareGroupStateRequest(
                "sharers",
                [read_share_group_state.ReadStateData(topic_id, [read_share_group_state.PartitionData(0, 0)])],
            ),
            0,
        ),
        "WriteShareGroupState": SampleRequest(
            write_share_group_state.WriteShareGroupStateRequest(
                "sharers",
                [write_share_group_state.WriteStateData(topic_id, [write_share_group_state.PartitionData(0, 5, 0, 3)])],
            ),
            1,
        ),
        "DeleteShareGroupState": SampleRequest(
            delete_share_group_state.DeleteShareGroupStateRequest(
                "nobodys",
                [delete_share_group_state.DeleteStateData(topic_id, [delete_share_group_state.PartitionData(0)])],
            ),
            0,
        ),
        "ReadShareGroupStateSummary": SampleRequest(
            read_share_group_state_summary.ReadShareGroupStateSummaryRequest(
                "sharers",
                [
                    read_share_group_state_summary.ReadStateSummaryData(
                        topic_id, [read_share_group_state_summary.PartitionData(0, 0)]
                    )
                ],
            ),
            1,
        ),
        "OffsetCommit": SampleRequest(
            OffsetCommitRequest(
                "loose",
                topics=both(
                    lambda name: OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 3)])
                ),
            ),
            9,
        ),
        "OffsetCommit by id": SampleRequest(
            OffsetCommitRequest(
                "loose",
                topics=[
                    OffsetCommitRequestTopic(topic_id=each, partitions=[OffsetCommitRequestPartition(0, 3)])
                    for each in (topic_id, UUID(int=7))
                ],
            ),
            10,
        ),
        "OffsetFetch": SampleRequest(
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        GROUP, topics=both(lambda name: OffsetFetchRequestTopics(name, partition_indexes=[0]))
                    )
                ]
            ),
            9,
        ),
        "OffsetFetch of all": SampleRequest(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)]), 9
        ),
        "OffsetFetch of one group": SampleRequest(
            OffsetFetchRequest(GROUP, both(lambda name: OffsetFetchRequestTopic(name, [0]))), 7
        ),
        "OffsetDelete": SampleRequest(
            OffsetDeleteRequest("nobodys", [OffsetDeleteRequestTopic(KNOWN, [OffsetDeleteRequestPartition(0)])]), 0
        ),
        "DescribeGroups": SampleRequest(DescribeGroupsRequest([GROUP], True), 5),
        "ConsumerGroupDescribe": SampleRequest(ConsumerGroupDescribeRequest(["nobodys"], True), 1),
        "ListGroups": SampleRequest(ListGroupsRequest(), 4),
        "DeleteGroups": SampleRequest(DeleteGroupsRequest(["nobodys"]), 2),
        "InitProducerId": SampleRequest(InitProducerIdRequest(None, 5000), 4),
        "InitProducerId of a transaction": SampleRequest(InitProducerIdRequest("another", 0), 4),
        "AddPartitionsToTxn": SampleRequest(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_producer_id=5,
                v3_and_below_topics=both(lambda name: AddPartitionsToTxnTopic(name, [0])),
            ),
            3,
        ),
        "AddPartitionsToTxn of many": SampleRequest(
            AddPartitionsToTxnRequest(
                [AddPartitionsToTxnTransaction(TRANSACTIONAL_ID, 5, 0, True, [AddPartitionsToTxnTopic(KNOWN, [0])])]
            ),
            4,
        ),
        "AddOffsetsToTxn": SampleRequest(AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 5, 0, GROUP), 3),
        "EndTxn": SampleRequest(EndTxnRequest(TRANSACTIONAL_ID, 5, 0, True), 3),
        "TxnOffsetCommit": SampleRequest(
            TxnOffsetCommitRequest(
                TRANSACTIONAL_ID,
                GROUP,
                5,
                0,
                topics=[TxnOffsetCommitRequestTopic(KNOWN, partitions=[TxnOffsetCommitRequestPartition(0, 3)])],
            ),
            3,
        ),
        "WriteTxnMarkers": SampleRequest(
            WriteTxnMarkersRequest([WritableTxnMarker(5, 0, True, [WritableTxnMarkerTopic(ABSENT, [0])])]), 1
        ),
        "DescribeProducers": SampleRequest(DescribeProducersRequest(both(lambda name: TopicRequest(name, [0]))), 0),
        "DescribeTransactions": SampleRequest(DescribeTransactionsRequest([TRANSACTIONAL_ID]), 0),
        "ListTransactions": SampleRequest(ListTransactionsRequest(), 1),
        "DescribeUserScramCredentials": SampleRequest(DescribeUserScramCredentialsRequest([UserName("nobody")]), 0),
        "AlterUserScramCredentials": SampleRequest(
            AlterUserScramCredentialsRequest([ScramCredentialDeletion("nobody", 1)], ()), 0
        ),
        "DescribeClientQuotas": SampleRequest(DescribeClientQuotasRequest([ComponentData("user", 0, "nobody")]), 1),
        "AlterClientQuotas": SampleRequest(
            AlterClientQuotasRequest([RequestEntryData([EntityData("user", "x")], [OpData("no_such", 1.0)])]), 1
        ),
        "DescribeAcls": SampleRequest(DescribeAclsRequest(2, "no such topic", 3, None, None, 1, 1), 3),
        "CreateAcls": SampleRequest(CreateAclsRequest([AclCreation(1, "no rule", 3, "User:a", "*", 3, 3)]), 3),
        "DeleteAcls": SampleRequest(DeleteAclsRequest([DeleteAclsFilter(2, "no such topic", 3, None, None, 1, 1)]), 3),
    }


def codes_in(answer: Any) -> Iterator[int]:
    """Return every error code in a response in order, including 0, which means that something was done."""
    if isinstance(answer, list | tuple):
        for item in answer:
            yield from codes_in(item)
    elif isinstance(answer, Struct):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if name in ("error_code", "partition_error_code"):
                yield value
            else:
                yield from codes_in(value)


def names_in(answer: Any) -> Iterator[str]:
    """Every text in an answer that is one of the names."""
    if isinstance(answer, list | tuple):
        for item in answer:
            yield from names_in(item)
    elif isinstance(answer, str):
        if answer in (KNOWN, ABSENT, GROUP, TRANSACTIONAL_ID):
            yield answer
    elif isinstance(answer, Struct):
        for name in answer.__struct_fields__:
            yield from names_in(getattr(answer, name))


def operations_in(answer: Any) -> Iterator[int]:
    """Return every non-empty authorized-operations field."""
    if isinstance(answer, list | tuple):
        for item in answer:
            yield from operations_in(item)
    elif isinstance(answer, Struct):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if name.endswith("authorized_operations"):
                yield value
            else:
                yield from operations_in(value)
