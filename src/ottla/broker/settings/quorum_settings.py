"""The settings of a controller: voters, addresses and timeouts. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.settings.endpoints import PLAINTEXT, parse_address
from ottla.config import split_list
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

ANONYMOUS = "User:ANONYMOUS"
VOTER = re.compile(r"(\d+)@(.+)")
INITIAL = re.compile(r"(\d+@.+:\d+):(\S+)")


class VoterAddress(NamedTuple):
    """A voter in the settings, with the id of its directory if that is given."""

    node_id: int
    host: str
    port: int
    directory_id: str = ""


def read_voters(text: str) -> list[VoterAddress]:
    """Parse `controller.quorum.voters`: `1@host:port,2@host:port`."""
    return [read_voter("controller.quorum.voters", text, each) for each in split_list(text)]


def read_initial_controllers(text: str) -> list[VoterAddress]:
    """Parse `--initial-controllers`: `1@host:port:directory`, the last as `ottla storage random-uuid` prints it."""
    found = []
    for each in split_list(text):
        match = INITIAL.fullmatch(each)
        if match is None:
            raise ConfigError(f"--initial-controllers {text!r}: {each!r} must be ID@HOST:PORT:DIRECTORY_ID")
        found.append(read_voter("--initial-controllers", text, match[1])._replace(directory_id=match[2]))
    if len({each.node_id for each in found}) < len(found) or not found:
        raise ConfigError(f"--initial-controllers {text!r}: each node votes once; give each another number")
    twice = next((id_ for id_, count in Counter(each.directory_id for each in found).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(
            f"--initial-controllers {text!r}: {twice} is the directory of two voters; create another with `ottla storage random-uuid`"
        )
    return found


def read_voter(setting: str, text: str, part: str) -> VoterAddress:
    match = VOTER.fullmatch(part)
    if match is None:
        raise ConfigError(f"{setting} = {text!r}: {part!r} must be ID@HOST:PORT")
    host, port = parse_address(setting, text, match[2])
    if not host or not port:
        raise ConfigError(f"{setting} = {text!r}: {part!r} must have a host and a port that other nodes can connect to")
    return VoterAddress(int(match[1]), host, port)


def check_controlling(config: BrokerConfig) -> None:
    """Check a controller. Raise ConfigError."""
    voters = read_voters(config.controller_quorum_voters)
    if not config.log_dirs:
        raise ConfigError("log.dirs is not set: a controller needs a directory that was formatted")
    names = {name.upper() for name in config.controller_listener_names}
    for each in config.endpoints():
        if each.name not in names:
            raise ConfigError(
                f"controller.listener.names = {','.join(config.controller_listener_names)!r}: it must name {each.name}, which is in "
                "listeners: a controller has only listeners for controllers and brokers"
            )
    if config.authorizer_class_name and ANONYMOUS not in config.super_principals:
        for name, protocol in config.protocols().items():
            if protocol == PLAINTEXT or (protocol == "SSL" and config.listener(name).ssl_client_auth != "required"):
                raise ConfigError(
                    f"authorizer.class.name is set, and listener {name} does not authenticate nodes: set "
                    f"listener.name.{name.lower()}.ssl.client.auth=required with SSL, use SASL_SSL, or name {ANONYMOUS} in super.users"
                )
    if voters and config.node_id not in {each.node_id for each in voters}:
        raise ConfigError(
            f"controller.quorum.voters = {config.controller_quorum_voters!r}: node.id = {config.node_id} is not among them; add it, "
            "or set controller.quorum.bootstrap.servers instead and run ottla cluster add-controller"
        )
