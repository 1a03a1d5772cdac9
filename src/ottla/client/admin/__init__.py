"""Manage topics, consumer groups, transactions and configs.

Admin ─► TopicCalls, GroupCalls … ─► AdminApiDriver ─► any broker, the controller, coordinators, leaders

The names below are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "AclBinding": "ottla.client.admin.acl",
    "AclBindingFilter": "ottla.client.admin.acl",
    "Admin": "ottla.client.admin.admin",
    "ClientQuotaEntity": "ottla.client.admin.client_quota",
    "ClusterDescription": "ottla.client.admin.cluster",
    "AdminConfig": "ottla.client.admin.config",
    "ConfigEntry": "ottla.client.admin.config_resource",
    "ConfigResource": "ottla.client.admin.config_resource",
    "DelegationToken": "ottla.client.admin.delegation_token",
    "TokenInformation": "ottla.client.admin.delegation_token",
    "FeatureMetadata": "ottla.client.admin.feature",
    "FeatureUpdate": "ottla.client.admin.feature",
    "FinalizedVersionRange": "ottla.client.admin.feature",
    "SupportedVersionRange": "ottla.client.admin.feature",
    "ConsumerGroupDescription": "ottla.client.admin.group",
    "GroupListing": "ottla.client.admin.group",
    "MemberDescription": "ottla.client.admin.group",
    "ShareGroupDescription": "ottla.client.admin.group",
    "ShareMemberDescription": "ottla.client.admin.group",
    "SharePartitionOffsetInfo": "ottla.client.admin.group",
    "StreamsGroupDescription": "ottla.client.admin.group",
    "StreamsMemberDescription": "ottla.client.admin.group",
    "StreamsSubtopology": "ottla.client.admin.group",
    "StreamsTasks": "ottla.client.admin.group",
    "StreamsTopologyDescription": "ottla.client.admin.group",
    "StreamsTopologyNode": "ottla.client.admin.group",
    "LogDirDescription": "ottla.client.admin.partition",
    "NewPartitions": "ottla.client.admin.partition",
    "PartitionReassignment": "ottla.client.admin.partition",
    "ReplicaInfo": "ottla.client.admin.partition",
    "ReplicaLogDirInfo": "ottla.client.admin.partition",
    "TopicPartitionReplica": "ottla.client.admin.partition",
    "QuorumInfo": "ottla.client.admin.quorum",
    "QuorumReplicaState": "ottla.client.admin.quorum",
    "RaftVoterEndpoint": "ottla.client.admin.quorum",
    "UserScramCredentialDeletion": "ottla.client.admin.scram",
    "UserScramCredentialUpsertion": "ottla.client.admin.scram",
    "NewTopic": "ottla.client.admin.topic",
    "TopicDescription": "ottla.client.admin.topic",
    "TopicListing": "ottla.client.admin.topic",
    "AbortTransactionSpec": "ottla.client.admin.transaction",
    "ProducerIdAndEpoch": "ottla.client.admin.transaction",
    "ProducerState": "ottla.client.admin.transaction",
    "TransactionDescription": "ottla.client.admin.transaction",
    "TransactionListing": "ottla.client.admin.transaction",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.client.admin.acl import AclBinding as AclBinding
    from ottla.client.admin.acl import AclBindingFilter as AclBindingFilter
    from ottla.client.admin.admin import Admin as Admin
    from ottla.client.admin.client_quota import ClientQuotaEntity as ClientQuotaEntity
    from ottla.client.admin.cluster import ClusterDescription as ClusterDescription
    from ottla.client.admin.config import AdminConfig as AdminConfig
    from ottla.client.admin.config_resource import ConfigEntry as ConfigEntry
    from ottla.client.admin.config_resource import ConfigResource as ConfigResource
    from ottla.client.admin.delegation_token import DelegationToken as DelegationToken
    from ottla.client.admin.delegation_token import TokenInformation as TokenInformation
    from ottla.client.admin.feature import FeatureMetadata as FeatureMetadata
    from ottla.client.admin.feature import FeatureUpdate as FeatureUpdate
    from ottla.client.admin.feature import FinalizedVersionRange as FinalizedVersionRange
    from ottla.client.admin.feature import SupportedVersionRange as SupportedVersionRange
    from ottla.client.admin.group import ConsumerGroupDescription as ConsumerGroupDescription
    from ottla.client.admin.group import GroupListing as GroupListing
    from ottla.client.admin.group import MemberDescription as MemberDescription
    from ottla.client.admin.group import ShareGroupDescription as ShareGroupDescription
    from ottla.client.admin.group import ShareMemberDescription as ShareMemberDescription
    from ottla.client.admin.group import SharePartitionOffsetInfo as SharePartitionOffsetInfo
    from ottla.client.admin.group import StreamsGroupDescription as StreamsGroupDescription
    from ottla.client.admin.group import StreamsMemberDescription as StreamsMemberDescription
    from ottla.client.admin.group import StreamsSubtopology as StreamsSubtopology
    from ottla.client.admin.group import StreamsTasks as StreamsTasks
    from ottla.client.admin.group import StreamsTopologyDescription as StreamsTopologyDescription
    from ottla.client.admin.group import StreamsTopologyNode as StreamsTopologyNode
    from ottla.client.admin.partition import LogDirDescription as LogDirDescription
    from ottla.client.admin.partition import NewPartitions as NewPartitions
    from ottla.client.admin.partition import PartitionReassignment as PartitionReassignment
    from ottla.client.admin.partition import ReplicaInfo as ReplicaInfo
    from ottla.client.admin.partition import ReplicaLogDirInfo as ReplicaLogDirInfo
    from ottla.client.admin.partition import TopicPartitionReplica as TopicPartitionReplica
    from ottla.client.admin.quorum import QuorumInfo as QuorumInfo
    from ottla.client.admin.quorum import QuorumReplicaState as QuorumReplicaState
    from ottla.client.admin.quorum import RaftVoterEndpoint as RaftVoterEndpoint
    from ottla.client.admin.scram import UserScramCredentialDeletion as UserScramCredentialDeletion
    from ottla.client.admin.scram import UserScramCredentialUpsertion as UserScramCredentialUpsertion
    from ottla.client.admin.topic import NewTopic as NewTopic
    from ottla.client.admin.topic import TopicDescription as TopicDescription
    from ottla.client.admin.topic import TopicListing as TopicListing
    from ottla.client.admin.transaction import AbortTransactionSpec as AbortTransactionSpec
    from ottla.client.admin.transaction import ProducerIdAndEpoch as ProducerIdAndEpoch
    from ottla.client.admin.transaction import ProducerState as ProducerState
    from ottla.client.admin.transaction import TransactionDescription as TransactionDescription
    from ottla.client.admin.transaction import TransactionListing as TransactionListing


__getattr__ = loader_of(__name__, HOME)
