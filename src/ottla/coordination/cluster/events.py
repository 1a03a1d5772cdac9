"""What can happen to the cluster's metadata. Chance comes in with the event: ids are drawn by whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct, field

from ottla.config import Option
from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.cluster.group_configs import NO_BOUNDS, Bounds
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.model import TopicPartition
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_client_quotas import RequestEntryData
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from ottla.protocol.messages.create_partitions import CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.messages.delete_topics import DeleteTopicState
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import Message


class TopicsRequested(Struct, frozen=True):
    """Somebody wants topics. The reply is a CreatableTopicResult for each, in order."""

    ticket: int
    topics: Sequence[CreatableTopic]
    topic_ids: Sequence[UUID]
    """An unused id for each topic."""
    node_id: int
    """The one broker that there is."""
    default_partitions: int
    default_replication: int
    validate_only: bool = False
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    """What the broker's settings make of the topics' defaults; told in the reply."""


class TopicsUnwanted(Struct, frozen=True):
    """Somebody wants topics gone. The reply is a DeletableTopicResult for each, in order."""

    ticket: int
    topics: Sequence[DeleteTopicState]


class PartitionsRequested(Struct, frozen=True):
    """Somebody wants topics to have more partitions. The reply is a CreatePartitionsTopicResult for each, in order."""

    ticket: int
    topics: Sequence[CreatePartitionsTopic]
    node_id: int
    validate_only: bool = False


class ConfigsChanged(Struct, frozen=True):
    """Somebody wants some configs changed. The reply is a Refusal or None for each resource, in order."""

    ticket: int
    resources: Sequence[incremental_alter_configs.AlterConfigsResource]
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    """What the broker's settings make of the topics' defaults; lists grow from there."""
    validate_only: bool = False
    node_id: int | None = 1
    """Of the only broker whose own configs may be changed; None where each broker's may: by controllers."""
    broker_options: Mapping[str, Option] = field(default_factory=dict)
    """The settings of the broker that may be changed, by their dotted names."""
    group_bounds: Bounds = field(default_factory=lambda: NO_BOUNDS)
    """What the broker's settings let groups set."""


class ConfigsReplaced(Struct, frozen=True):
    """Somebody wants resources to have these configs and no others. The reply is as for ConfigsChanged."""

    ticket: int
    resources: Sequence[alter_configs.AlterConfigsResource]
    validate_only: bool = False
    node_id: int | None = 1
    broker_options: Mapping[str, Option] = field(default_factory=dict)
    group_bounds: Bounds = field(default_factory=lambda: NO_BOUNDS)
    """As for ConfigsChanged, like the two before."""


class ProducerIdsRequested(Struct, frozen=True):
    """A broker wants producer ids to give away. The reply is the first of them and their count."""

    ticket: int
    count: int
    node_id: int


class ClusterBegun(Struct, frozen=True):
    """There is a cluster, and nothing in it. The reply is None."""

    ticket: int
    told: tuple[Message, ...] = ()
    """With what it is to begin, where somebody said so."""


class NodeStarted(Struct, frozen=True):
    """The one broker is there. The reply is None."""

    ticket: int
    node_id: int


class CopiesPlaced(Struct, frozen=True):
    """The one broker has put copies in directories of its own, or moved them there. The reply is None."""

    ticket: int
    directories: Mapping[TopicPartition, UUID]


class FeaturesRequested(Struct, frozen=True):
    """A request for other levels of features. The reply is None, a Refusal of all, or Refusals by feature."""

    ticket: int
    updates: Sequence[FeatureUpdateKey]
    validate_only: bool = False
    is_per_feature: bool = False
    """True if the response has a result per feature: a feature that is not supported here is then refused by itself."""


class AclsRequested(Struct, frozen=True):
    """Somebody wants rules to be kept. The reply is a Refusal or None for each, in order."""

    ticket: int
    acls: Sequence[Acl]
    acl_ids: Sequence[UUID]
    """An unused id for each rule."""


class AclsUnwanted(Struct, frozen=True):
    """Somebody wants rules gone. The reply is, for each filter in order, a Refusal or the rules that it meant."""

    ticket: int
    filters: Sequence[AclFilter]


class ClientQuotasChanged(Struct, frozen=True):
    """Somebody wants other limits of clients. The reply is a Refusal or None for each entity, in order."""

    ticket: int
    entries: Sequence[RequestEntryData]
    validate_only: bool


class ScramCredentialsRequested(Struct, frozen=True):
    """Somebody wants users to have other passwords. The reply is an AlterUserScramCredentialsResult for each user."""

    ticket: int
    deletions: Sequence[ScramCredentialDeletion]
    upsertions: Sequence[ScramCredentialUpsertion]


class TokenRequested(Struct, frozen=True):
    """Somebody wants a delegation token, or another end of one. The reply is None."""

    ticket: int
    token: DelegationTokenRecord


class TokensUnwanted(Struct, frozen=True):
    """Delegation tokens are at their end. The reply is None."""

    ticket: int
    token_ids: Sequence[str]


Event = (
    TopicsRequested
    | TopicsUnwanted
    | PartitionsRequested
    | ConfigsChanged
    | ConfigsReplaced
    | ProducerIdsRequested
    | ClusterBegun
    | NodeStarted
    | CopiesPlaced
    | FeaturesRequested
    | AclsRequested
    | AclsUnwanted
    | ClientQuotasChanged
    | ScramCredentialsRequested
    | TokenRequested
    | TokensUnwanted
)
