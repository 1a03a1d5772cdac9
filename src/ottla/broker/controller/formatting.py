"""Formatting of the directories of a controller before its first start, as `kafka-storage format` does it.

    bootstrap.checkpoint     feature levels and SCRAM users, if options ask for other than the defaults
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint     header │ kraft.version 1, voters │ footer
    meta.properties

There is no checkpoint of voters if the settings list the voters (`controller.quorum.voters`, kraft.version 0), or if the
controller will be added to an existing quorum. `meta.properties` is written last: a directory that has it is completely
formatted. Files of a format that crashed before are removed by the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ottla.broker.metadata.bootstrap_checkpoint import BOOTSTRAP, write_bootstrap
from ottla.broker.security.scram_credentials import NewUser, build_upsertion, read_user
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import ANY_HOST
from ottla.broker.settings.quorum_settings import VoterAddress
from ottla.broker.settings.roles import controller_half
from ottla.clock import Clock, SystemClock
from ottla.coordination.cluster.scram_change import build_record
from ottla.coordination.controller.initial_levels import build_level_records, choose_initial_levels
from ottla.coordination.quorum.control_records import KRaftVersionRecord, encode_control
from ottla.coordination.quorum.observer import METADATA_TOPIC
from ottla.coordination.quorum.voters import VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ConfigError
from ottla.kafka_id import LAST_RESERVED, id_of
from ottla.protocol.schema import Message
from ottla.storage.directory.meta_properties import FILE_NAME, MetaProperties, random_id
from ottla.storage.directory.offset_checkpoints import OffsetCheckpoints
from ottla.storage.state_log.snapshot import EMPTY, write_state
from ottla.storage.state_log.voter import Quorum

LOG = f"{METADATA_TOPIC}-0"
KRAFT_VERSION = 1
"""The level at which voters are in the log, and are changed by records there (KIP-853)."""


def format_standalone(
    config: BrokerConfig, cluster_id: str, clock: Clock, first: Sequence[Message] = ()
) -> MetaProperties:
    """Format this node as the only initial voter; others can be added later. `first` are the bootstrap records."""
    me = find_own_voter(config)._replace(directory_id=random_id())
    return format_directories(config, cluster_id, clock, first, [me])


def format_initial(
    config: BrokerConfig, cluster_id: str, voters: Sequence[VoterAddress], clock: Clock, first: Sequence[Message] = ()
) -> MetaProperties:
    """Format this node as one of several initial voters. Every node is formatted with the same list of voters."""
    me = next((each for each in voters if each.node_id == config.node_id), None)
    if me is None:
        raise ConfigError(
            f"--initial-controllers: node.id = {config.node_id} is not among them; add it, or leave out the option"
        )
    for each in voters:
        try:
            if id_of(each.directory_id) <= LAST_RESERVED:
                raise ValueError(
                    "it is one of Kafka's marks, and no broker gets in with it: draw one by `ottla storage random-uuid`"
                )
        except ValueError as error:
            raise ConfigError(
                f"--initial-controllers: the directory id {each.directory_id!r} of node {each.node_id} cannot be: {error}"
            ) from None
    return format_directories(config, cluster_id, clock, first, voters)


def format_without_voters(
    config: BrokerConfig, cluster_id: str, clock: Clock | None = None, first: Sequence[Message] = ()
) -> MetaProperties:
    """Format a node without initial voters.

    The voters are in the settings, or in the log of the quorum that adds this node. A sole node writes itself as the
    voter at its first start.
    """
    return format_directories(config, cluster_id, clock or SystemClock(), first)


def find_own_voter(config: BrokerConfig) -> VoterAddress:
    """Return the address at which other nodes reach this controller. ConfigError if the settings do not state one."""
    config = without_observers(config)
    first = config.endpoints()[0]
    place = config.advertised_endpoints().get(first.name, first)
    if place.host in ANY_HOST or not place.port:
        raise ConfigError(
            f"listeners = {config.listeners!r}: {first.name} must have a host and a port that other nodes can connect to, because the "
            f"addresses of the voters are stored; set advertised.listeners = {first.name}://HOST:PORT"
        )
    return VoterAddress(config.node_id, place.host, place.port)


def write_voters(config: BrokerConfig, voters: Sequence[VoterAddress], clock: Clock) -> None:
    """Write the checkpoint with the initial voters, at which the log starts."""
    listener = without_observers(config).endpoints()[0].name
    voter_set = VoterSet(
        Voter(
            each.node_id,
            id_of(each.directory_id),
            [Endpoint(listener, each.host, each.port)],
            KRaftVersionFeature(0, 1),
        )
        for each in voters
    )
    folder = find_metadata_folder(config) / LOG
    folder.mkdir()
    quorum = Quorum(encode_control(KRaftVersionRecord(0, KRAFT_VERSION))[1], encode_control(voter_set.record())[1])
    write_state(folder, EMPTY, [], clock.wall_ms(), quorum, sync=True)


def without_observers(config: BrokerConfig) -> BrokerConfig:
    """Return the settings of the controller role, which are a part of a combined node's."""
    return controller_half(config) if config.has_both_roles else config


def find_metadata_folder(config: BrokerConfig) -> Path:
    return Path(config.metadata_directory)


def list_directories(config: BrokerConfig) -> list[str]:
    """Return all directories of a node, the metadata directory first."""
    return list(dict.fromkeys((config.metadata_directory, *config.directories)))


def formatted_already(config: BrokerConfig, cluster_id: str) -> list[str]:
    """Return the directories that are formatted. ConfigError if one belongs to another node or cluster."""
    found = [each for each in list_directories(config) if (Path(each) / FILE_NAME).exists()]
    for each in found:
        MetaProperties.read_formatted(Path(each), config.node_id, cluster_id)
    return found


def format_other_directories(config: BrokerConfig, cluster_id: str, formatted: Collection[str]) -> None:
    """Format the remaining directories of a node."""
    for each in list_directories(config):
        if each not in formatted:
            MetaProperties.format(
                Path(each), config.node_id, cluster_id, fill=OffsetCheckpoints(Path(each)).create_files
            )


def has_no_voters(config: BrokerConfig) -> bool:
    """Return True if the metadata directory is formatted, and it contains no voters."""
    folder = find_metadata_folder(config)
    return (folder / FILE_NAME).exists() and not (folder / LOG).exists()


def format_directories(
    config: BrokerConfig,
    cluster_id: str,
    clock: Clock,
    first: Sequence[Message] = (),
    voters: Sequence[VoterAddress] = (),
) -> MetaProperties:
    """Format each directory that is not formatted yet; the metadata directory, with its checkpoints, first."""
    folder = find_metadata_folder(config)
    own = next((each.directory_id for each in voters if each.node_id == config.node_id), None)

    def fill() -> None:
        if first:
            write_bootstrap(folder, first, clock.wall_ms())
        if voters:
            write_voters(config, voters, clock)
        OffsetCheckpoints(folder).create_files()  # marks the directory as used, unlike one that was emptied

    remove_temporary_files(folder)
    main = MetaProperties.format(folder, config.node_id, cluster_id, own, fill)
    format_other_directories(config, cluster_id, formatted_already(config, cluster_id))
    return main


def remove_temporary_files(folder: Path) -> None:
    """Remove the files of an unfinished format. A log that has records is kept."""
    log = folder / LOG
    if (folder / FILE_NAME).exists():
        return
    if log.is_dir() and all(each.name.startswith(EMPTY.file_name) for each in log.iterdir()):
        shutil.rmtree(log)
    if not log.exists():
        (folder / BOOTSTRAP).unlink(missing_ok=True)


def build_bootstrap_records(
    release: str | None, requested_levels: Mapping[str, int], passwords: Sequence[str], *, fixed_voters: bool
) -> Sequence[Message]:
    """Return feature levels and SCRAM users for a new cluster; empty without options, as the defaults apply then."""
    if not (release or requested_levels or passwords):
        return ()
    levels = choose_initial_levels(release, requested_levels, fixed_voters=fixed_voters)
    return [*build_level_records(levels), *password_records(passwords)]


def password_records(lines: Sequence[str]) -> list[Message]:
    """Return records for lines like `SCRAM-SHA-256=[name=alice,password=…]`, each with a random salt.

    ConfigError if a line is malformed or repeats a user; its text contains no password.
    """
    users: dict[tuple[str, str], NewUser] = {}
    for line in lines:
        user = read_user(line.strip(), "--add-scram")
        if (user.name, user.mechanism) in users:
            raise ConfigError(f"--add-scram gives {user.name!r} a password for {user.mechanism} twice; give it once")
        users[user.name, user.mechanism] = user
    return [build_record({}, build_upsertion(user)) for user in users.values()]
