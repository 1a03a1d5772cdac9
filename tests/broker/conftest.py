from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.embedded import Broker
from tests.broker.wire import Wire


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker with an empty directory."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    """A connection to it."""
    with Wire(broker.bootstrap_servers) as wire:
        yield wire
