"""What a node with the settings of a cluster is: a broker of it, a controller, or both in one process. Pure.

process.roles=broker,controller    names others ──► both: a broker half, and a controller half at the controllers' listeners
                                   names itself, or nobody ──► a cluster of its own
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
"""One and the same host, by any of its names."""


def is_both(config: BrokerConfig) -> bool:
    """Whether it is a broker and a controller of a cluster in which there are others."""
    return set(config.process_roles) == BOTH and names_others(config)


def names_others(config: BrokerConfig) -> bool:
    """Whether the settings know of a controller besides this node."""
    voters = read_voters(config.controller_quorum_voters)
    own = controller_endpoints(config, config.listeners) + controller_endpoints(config, config.advertised_listeners)
    places = controllers(config) if config.controller_quorum_bootstrap_servers else []
    foreign = [place for place in places if not any(is_at(each, *place) for each in own)]
    return any(each.node_id != config.node_id for each in voters) or len(places) > 1 or bool(foreign)


def controllers(config: BrokerConfig) -> list[tuple[str, int]]:
    """Where a broker asks for whoever leads them."""
    if config.controller_quorum_bootstrap_servers:
        return read_controllers(config.controller_quorum_bootstrap_servers)
    return [(each.host, each.port) for each in read_voters(config.controller_quorum_voters)]


def controller_half(config: BrokerConfig) -> BrokerConfig:
    """The same settings for a controller alone, which listens where controllers come."""
    listeners, told = (controller_endpoints(config, text) for text in (config.listeners, config.advertised_listeners))
    return changed(
        config,
        process_roles=("controller",),
        listeners=",".join(map(str, listeners)),
        advertised_listeners=",".join(map(str, told)),
    )


def controller_endpoints(config: BrokerConfig, text: str) -> list[Endpoint]:
    """Those of some addresses that bear a name in `controller.listener.names`."""
    names = {name.upper() for name in config.controller_listener_names}
    return [each for each in read_endpoints("listeners", text, lambda: "") if each.name in names]


def is_at(endpoint: Endpoint, host: str, port: int) -> bool:
    """Whether who listens there is reached at that address, as far as names tell."""
    same = endpoint.host in ANY_HOST or endpoint.host == host or {endpoint.host, host} <= HERE
    return endpoint.port == port and same
