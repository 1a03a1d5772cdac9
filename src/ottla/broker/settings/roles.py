"""The roles of a node with the settings of a cluster: broker, controller, or both in one process. Pure.

process.roles=broker,controller    with other nodes ──► both: a broker, and a controller on the controllers' listeners
                                   without ──► both, as the only voter: no other node, and so no listener for controllers
no process.roles, or broker        without controllers ──► the same
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.settings.endpoints import ANY_HOST, Endpoint, read_controllers, read_endpoints
from ottla.broker.settings.quorum_settings import read_voters
from ottla.settings_class import changed

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

BOTH = {"broker", "controller"}
HERE = {"localhost", "127.0.0.1", "::1"}
"""Names of the same host."""


def is_both(config: BrokerConfig) -> bool:
    """Return True for a broker and controller of a cluster with other nodes."""
    return set(config.process_roles) == BOTH and has_other_nodes(config)


def is_alone(config: BrokerConfig) -> bool:
    """Return True for a node with the broker role, if its settings name no other controller."""
    if config.process_roles == ("controller",) or is_both(config):
        return False
    return config.process_roles != ("broker",) or not list_controllers(config)


def has_other_nodes(config: BrokerConfig) -> bool:
    """Return True if the settings name a controller besides this node."""
    voters = read_voters(config.controller_quorum_voters)
    own = controller_endpoints(config, config.listeners) + controller_endpoints(config, config.advertised_listeners)
    places = list_controllers(config) if config.controller_quorum_bootstrap_servers else []
    foreign = [place for place in places if not any(is_at(each, *place) for each in own)]
    return any(each.node_id != config.node_id for each in voters) or len(places) > 1 or bool(foreign)


def list_controllers(config: BrokerConfig) -> list[tuple[str, int]]:
    """Return the addresses of the controllers."""
    if config.controller_quorum_bootstrap_servers:
        return read_controllers(config.controller_quorum_bootstrap_servers)
    return [(each.host, each.port) for each in read_voters(config.controller_quorum_voters)]


def controller_half(config: BrokerConfig) -> BrokerConfig:
    """Return the same settings for a controller alone, with the controllers' listeners."""
    listeners, advertised = (
        controller_endpoints(config, text) for text in (config.listeners, config.advertised_listeners)
    )
    return changed(
        config,
        process_roles=("controller",),
        listeners=",".join(map(str, listeners)),
        advertised_listeners=",".join(map(str, advertised)),
    )


def controller_endpoints(config: BrokerConfig, text: str) -> list[Endpoint]:
    """Return the addresses with a name in `controller.listener.names`."""
    names = {name.upper() for name in config.controller_listener_names}
    return [each for each in read_endpoints("listeners", text, lambda: "") if each.name in names]


def is_at(endpoint: Endpoint, host: str, port: int) -> bool:
    """Return True if a listener on `endpoint` has that address, without resolving host names."""
    same = endpoint.host in ANY_HOST or endpoint.host == host or {endpoint.host, host} <= HERE
    return endpoint.port == port and same
