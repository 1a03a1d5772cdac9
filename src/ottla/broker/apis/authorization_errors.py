"""The responses to requests that are denied as a whole: the error is in every place that the API has for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.coordination.groups.classic.responses import join_error_response
from ottla.protocol.apis import APIS
from ottla.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ottla.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.protocol.schema import Message, replace

Deny = Callable[[int, Any, int, str], Message]
NULL_PROTOCOL_SINCE = 7
"""From this version of JoinGroup on there may be no protocol; before, its name is empty."""


def build_denial(key: int, version: int, request: Any, code: int, sentence: str) -> Message:
    """Return an API's response with the error in every place that has one."""
    if key in SPECIAL:
        return SPECIAL[key](version, request, code, sentence)
    response = APIS[key].response()
    response.error_code = code  # type: ignore[attr-defined]  # all that are not SPECIAL have it
    if hasattr(response, "error_message"):
        response.error_message = sentence
    return response


def join_group(version: int, request: JoinGroupRequest, code: int, sentence: str) -> Message:
    answer = join_error_response(code, request.member_id)
    return answer if version >= NULL_PROTOCOL_SINCE else replace(answer, protocol_name="")


def offset_commit(version: int, request: OffsetCommitRequest, code: int, sentence: str) -> Message:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def txn_offset_commit(version: int, request: TxnOffsetCommitRequest, code: int, sentence: str) -> Message:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [TxnOffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def write_txn_markers(version: int, request: WriteTxnMarkersRequest, code: int, sentence: str) -> Message:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(index, code) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def create_acls(version: int, request: CreateAclsRequest, code: int, sentence: str) -> Message:
    return CreateAclsResponse(results=[AclCreationResult(code, sentence) for _ in request.creations])


def delete_acls(version: int, request: DeleteAclsRequest, code: int, sentence: str) -> Message:
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(code, sentence) for _ in request.filters])


def alter_replica_log_dirs(version: int, request: AlterReplicaLogDirsRequest, code: int, sentence: str) -> Message:
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(results=[AlterReplicaLogDirTopicResult(*item) for item in topics.items()])


def elect_leaders(version: int, request: ElectLeadersRequest, code: int, sentence: str) -> Message:
    """Return the denial; clients of version 0 read only the partitions' errors."""
    return ElectLeadersResponse(
        error_code=code if version else 0,
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [PartitionResult(index, code, sentence) for index in topic.partitions])
            for topic in request.topic_partitions or ()
        ],
    )


def describe_client_quotas(version: int, request: DescribeClientQuotasRequest, code: int, sentence: str) -> Message:
    return DescribeClientQuotasResponse(error_code=code, error_message=sentence, entries=None)


def alter_client_quotas(version: int, request: AlterClientQuotasRequest, code: int, sentence: str) -> Message:
    return AlterClientQuotasResponse(entries=[EntryData(code, sentence, each.entity) for each in request.entries])


def alter_partition_reassignments(
    version: int, request: AlterPartitionReassignmentsRequest, code: int, sentence: str
) -> Message:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=sentence,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [ReassignablePartitionResponse(each.partition_index, code, sentence) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def describe_user_scram_credentials(
    version: int, request: DescribeUserScramCredentialsRequest, code: int, sentence: str
) -> Message:
    results = [DescribeUserScramCredentialsResult(each.name, code, sentence) for each in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=sentence, results=results)


def alter_user_scram_credentials(
    version: int, request: AlterUserScramCredentialsRequest, code: int, sentence: str
) -> Message:
    names = [*(each.name for each in request.deletions), *(each.name for each in request.upsertions)]
    results = [AlterUserScramCredentialsResult(name, code, sentence) for name in dict.fromkeys(names)]
    return AlterUserScramCredentialsResponse(results=results)


def share_group_state(module: Any, response: type[Message], topic_result: type) -> Deny:
    """Return the denial of a request for states of share groups, which has an error for each partition."""

    def deny(version: int, request: Any, code: int, sentence: str) -> Message:
        results = [
            topic_result(
                topic.topic_id, [module.PartitionResult(each.partition, code, sentence) for each in topic.partitions]
            )
            for topic in request.topics
        ]
        return response(results=results)  # type: ignore[call-arg]  # each of the five has it

    return deny


SPECIAL: Mapping[int, Deny] = {
    8: offset_commit,
    11: join_group,
    27: write_txn_markers,
    28: txn_offset_commit,
    30: create_acls,
    31: delete_acls,
    34: alter_replica_log_dirs,
    43: elect_leaders,
    45: alter_partition_reassignments,
    48: describe_client_quotas,
    49: alter_client_quotas,
    50: describe_user_scram_credentials,
    51: alter_user_scram_credentials,
    83: share_group_state(
        initialize_share_group_state,
        initialize_share_group_state.InitializeShareGroupStateResponse,
        initialize_share_group_state.InitializeStateResult,
    ),
    84: share_group_state(
        read_share_group_state,
        read_share_group_state.ReadShareGroupStateResponse,
        read_share_group_state.ReadStateResult,
    ),
    85: share_group_state(
        write_share_group_state,
        write_share_group_state.WriteShareGroupStateResponse,
        write_share_group_state.WriteStateResult,
    ),
    86: share_group_state(
        delete_share_group_state,
        delete_share_group_state.DeleteShareGroupStateResponse,
        delete_share_group_state.DeleteStateResult,
    ),
    87: share_group_state(
        read_share_group_state_summary,
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.ReadStateSummaryResult,
    ),
}
"""By API key; all others have one error for the whole response."""
