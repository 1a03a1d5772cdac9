"""A controller's replica of the quorum, made of its settings and of what its directory has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from ottla.broker.controllers.controller_apis import KRAFT_VERSIONS
from ottla.broker.controllers.leaderless import Leaderless
from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import ANY_HOST, read_controllers
from ottla.broker.settings.quorum_settings import read_voters
from ottla.clock import Clock
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ConfigError, CorruptRecordError
from ottla.kafka_id import id_of
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.state_log.quorum_state import FILE_NAME as PROMISES
from ottla.storage.state_log.quorum_state import lost_vote_error

logger = logging.getLogger(__name__)
ELECTIONS = 2
FIRST_BOOTSTRAP = -2
"""The number of the first of `controller.quorum.bootstrap.servers`, as it is not known which node that is; the others follow downwards."""


def fixed_voters(config: BrokerConfig) -> VoterSet:
    """Those of the settings, by their numbers alone."""
    name = config.controller_listener_names[0].upper()
    return VoterSet(
        Voter(
            each.node_id,
            endpoints=[Endpoint(name, each.host, each.port)],
            k_raft_version_feature=KRaftVersionFeature(0, 1),
        )
        for each in read_voters(config.controller_quorum_voters)
    )


def make_raft(
    config: BrokerConfig,
    meta: MetaProperties,
    log: QuorumLog,
    clock: Clock,
    chance: float,
    bound: Mapping[str, tuple[str, int]],
) -> Raft:
    """The machine as it begins, which listens at `bound`; ConfigError where it could never hear of anybody."""
    me = ReplicaKey(config.node_id, id_of(meta.directory_id))
    shape, bootstrap = log.shape(), bootstrap_places(config)
    if not shape.voters and not bootstrap:
        raise ConfigError(
            f"nothing says who votes: neither {log.directory}, nor controller.quorum.voters, nor "
            "controller.quorum.bootstrap.servers; format the directory with --standalone or --initial-controllers, or set one of them"
        )
    warn_of_fixed_voters(config, shape)
    numbers = [FIRST_BOOTSTRAP - place for place in range(len(bootstrap))]
    saved = promises(log, shape, me)
    if saved is None and not shape.end:
        log.persist(ElectionState())  # While that stands, an empty log is one that never had anything.
    now = clock.monotonic()
    own_entry = own_entry_of(config, bound)
    return Raft(
        me,
        meta.cluster_id,
        shape,
        saved,
        patience(config),
        now,
        chance,
        numbers,
        can_be_controller=True,
        own_entry=own_entry,
    )


def warn_of_fixed_voters(config: BrokerConfig, shape: LogShape) -> None:
    """Say that the log counts, where the settings name others (as Kafka has it)."""
    named = fixed_voters(config).ids
    if shape.kraft_version and named and shape.voters and named != shape.voters.ids:
        logger.warning(
            "controller.quorum.voters names %s, and %s vote by the log, which counts: leave the setting out, and set "
            "controller.quorum.bootstrap.servers",
            *(", ".join(map(str, sorted(ids))) for ids in (named, shape.voters.ids)),
        )


def leaderless_of(raft: Raft, config: BrokerConfig, now: float) -> Leaderless:
    """Who notices that nobody leads, after a few elections that came to nothing."""
    spans = config.controller_quorum_fetch_timeout_ms + config.controller_quorum_election_timeout_ms
    return Leaderless(raft, partial(place_of, raft, config), ELECTIONS * spans / 1000, now)


def own_entry_of(config: BrokerConfig, bound: Mapping[str, tuple[str, int]]) -> OwnEntry:
    """What others are to know of it; not where it is, if it listens on every address and does not say which to use."""
    advertised, order = config.advertised_endpoints(), [name.upper() for name in config.controller_listener_names]
    names = sorted(bound, key=lambda name: order.index(name) if name in order else len(order))
    places = [Endpoint(name, *(advertised[name][1:] if name in advertised else bound[name])) for name in names]
    told = () if any(each.host in ANY_HOST for each in places) else tuple(places)
    return OwnEntry(told, KRAFT_VERSIONS, config.controller_quorum_auto_join_enable)


def promises(log: QuorumLog, shape: LogShape, me: ReplicaKey) -> ElectionState | None:
    """What was promised; a vote for itself is one for this directory, where only the number was written down.

    CorruptRecordError where it is lost: who votes among others has promised something before its log has anything of theirs. One that
    votes alone goes on, as Kafka's does, behind the epochs of its log.
    """
    alone = shape.voters.ids == {me.id}
    try:
        saved = log.read_promises()
    except CorruptRecordError as error:
        raise lost_vote_error(str(error), alone=alone) from error
    if saved is None and shape.end and alone and not shape.epoch:
        # A broker that was a cluster of its own elects nobody: its records have epoch 0, and there was no promise to lose.
        logger.info("first start as a voter: node %d votes alone until controllers are added", me.id)
    elif saved is None and shape.end and alone:
        logger.warning(
            "%s is gone: this node votes alone, and goes on with the epochs of its log", log.directory / PROMISES
        )
    elif saved is None and shape.end and shape.kraft_version and shape.voters.has(me):
        raise lost_vote_error(f"{log.directory / PROMISES} is gone", alone=False)
    if saved is not None and saved.voted is not None and saved.voted.is_same(me):
        return saved._replace(voted=me)
    return saved


def patience(config: BrokerConfig) -> QuorumConfig:
    return QuorumConfig(
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
    )


def bootstrap_places(config: BrokerConfig) -> list[Address]:
    text = config.controller_quorum_bootstrap_servers
    return [Address(*each) for each in read_controllers(text)] if text else []


def place_of(raft: Raft, config: BrokerConfig, node: int) -> Address | None:
    """Where a node is: as the voters are known, else as the leader was told of; None where nobody has said it."""
    if node <= FIRST_BOOTSTRAP:
        return bootstrap_places(config)[FIRST_BOOTSTRAP - node]
    known = raft.endpoints_of(node)
    names = [name.upper() for name in config.controller_listener_names]
    best = next((each for each in known if each.name.upper() in names), known[0] if known else None)
    return None if best is None else Address(best.host, best.port)
