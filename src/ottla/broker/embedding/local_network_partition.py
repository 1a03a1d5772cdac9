"""Simulated network partitions of a local cluster: the side of each node, and the addresses that it must not reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.broker.peers.network_partition import Place
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.roles import controller_half

MAINLAND = 0


class NetworkSides:
    """The side of each node. All nodes start on the same side."""

    def __init__(self) -> None:
        self._sides: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sides)

    def cut_off(self, nodes: Iterable[int]) -> None:
        """Put nodes on a side of their own."""
        side = max(self._sides.values(), default=MAINLAND) + 1
        self._sides.update(dict.fromkeys(nodes, side))

    def heal(self) -> None:
        self._sides.clear()

    def find_side(self, node: int) -> int:
        return self._sides.get(node, MAINLAND)

    def apart_from(self, node: int, configs: Mapping[int, BrokerConfig]) -> list[Place]:
        """Return the addresses that a node must not reach."""
        hidden = (config for other, config in configs.items() if self.find_side(other) != self.find_side(node))
        return [place for config in hidden for place in list_addresses(config)]


def list_addresses(config: BrokerConfig) -> set[Place]:
    """Return the addresses at which other nodes reach a node."""
    advertised = {(host, port) for _, host, port in config.advertised_endpoints().values()}
    halves = [config, controller_half(config)] if config.has_both_roles else [config]
    return advertised | {(each.host, each.port) for half in halves for each in half.endpoints()}
