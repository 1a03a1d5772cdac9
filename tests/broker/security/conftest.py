from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from tests.broker.security.secured import LISTENERS, Secured, settings_of
from tests.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a listener of each kind."""
    keys = tmp_path_factory.mktemp("keys")
    with Broker(listen=LISTENERS, **settings_of(authority, keys)) as broker:
        yield Secured(broker, authority, keys)
