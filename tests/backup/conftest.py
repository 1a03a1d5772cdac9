"""Two new brokers for each test: the one that is backed up, and the one that is restored into."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla import Broker
from tests.mirror.conftest import Side


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    """The source and the target cluster."""
    with Broker() as source, Broker() as target:
        yield Side(source.bootstrap_servers), Side(target.bootstrap_servers)
