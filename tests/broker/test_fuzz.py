"""Whatever is sent to a broker that runs, it lives, holds on to nothing, and serves the others."""

from __future__ import annotations

import random
import time

import pytest

from tests.broker.fuzzer import attack, fuzzed, rounds, tracebacks

REQUESTS = 900
"""Requests before and after the first measurement: several of each API in each version."""


@pytest.mark.behaviour("B1")
def test_no_request_stops_the_broker_leaks_or_affects_another_client() -> None:
    chance = random.Random(20)
    frames = rounds(chance)
    with fuzzed() as broker:
        attack(broker.address, frames, REQUESTS, chance)
        before, served = broker.cost(), broker.served
        attack(broker.address, frames, REQUESTS, chance)
        deadline = time.monotonic() + 10
        while broker.cost().descriptors > before.descriptors + 20 and time.monotonic() < deadline:
            pass  # it notices one by one that the attackers have disconnected
        after = broker.cost()
        assert broker.fault is None
        assert broker.served > served
        assert after.descriptors <= before.descriptors + 20
        assert after.memory - before.memory < 20_000_000
        found = tracebacks(broker.end())
    assert not found, "\n".join(found)  # which a second run need not repeat
