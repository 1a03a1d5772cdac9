"""A cluster's network on this machine, in sides that do not reach each other: which node is told to keep apart from what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.broker.peers.split import Place
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.roles import controller_half

MAINLAND = 0


class Sides:
    """On which side of the splits each node is; who is not told of is with the others."""

    def __init__(self) -> None:
        self._sides: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sides)

    def cut_off(self, nodes: Iterable[int]) -> None:
        """Have them reach each other, and nobody else."""
        side = max(self._sides.values(), default=MAINLAND) + 1
        self._sides.update(dict.fromkeys(nodes, side))

    def heal(self) -> None:
        self._sides.clear()

    def of(self, node: int) -> int:
        return self._sides.get(node, MAINLAND)

    def apart_from(self, node: int, configs: Mapping[int, BrokerConfig]) -> list[Place]:
        """Where those listen that a node does not reach."""
        hidden = (config for other, config in configs.items() if self.of(other) != self.of(node))
        return [place for config in hidden for place in places_of(config)]


def places_of(config: BrokerConfig) -> set[Place]:
    """Where the others of a cluster reach a node."""
    told = {(host, port) for _, host, port in config.advertised_endpoints().values()}
    halves = [config, controller_half(config)] if config.combines else [config]
    return told | {(each.host, each.port) for half in halves for each in half.endpoints()}
