"""The wall clock of a running broker is set back by an hour: timeouts use a monotonic clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.membership import Membership, describe, settle
from tests.broker.serving import start_server
from tests.broker.wire import Wire, fetch
from tests.patience import eventually

START_MS = 1_750_000_000_000
HOUR_MS = 3_600_000


class Served:
    """A broker with a manual clock."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000.0, START_MS)
        config = read_config(listeners="127.0.0.1:0", connections_max_idle_ms=-1, group_initial_rebalance_delay_ms=0)
        self.server = start_server(config, self.clock)

    @property
    def bootstrap_servers(self) -> str:
        return self.server.bootstrap_servers

    def set_back(self) -> None:
        self.clock.set_wall_ms(self.clock.wall_ms() - HOUR_MS)

    def let_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.server.call_soon(lambda: None)


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    loop = threading.Thread(target=served.server.run)
    loop.start()
    try:
        with Wire(served.bootstrap_servers) as wire:
            wire.create("t")
        yield served
    finally:
        served.server.stop()
        loop.join()


def begin(wire: Wire) -> None:
    """A transaction that may take a minute."""
    who: InitProducerIdResponse = wire.ask(InitProducerIdRequest("tx", 60_000), 5)
    about = AddPartitionsToTxnTransaction(
        "tx", who.producer_id, who.producer_epoch, False, [AddPartitionsToTxnTopic("t", [0])]
    )
    answer = wire.ask(AddPartitionsToTxnRequest([about]), 5)
    assert answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code == 0


def state(wire: Wire) -> str:
    (found,) = wire.ask(DescribeTransactionsRequest(["tx"])).transaction_states
    return str(found.transaction_state)


def test_an_open_transaction_is_not_extended_when_the_wall_clock_is_set_back(served: Served) -> None:
    with Wire(served.bootstrap_servers) as wire:
        begin(wire)
        served.set_back()
        served.let_pass(60)
        assert state(wire) == "Ongoing"
        # Now it has timed out, and the next check is within ten seconds.
        served.let_pass(11)
        eventually(lambda: state(wire) == "CompleteAbort")


def test_session_timeouts_are_unchanged_when_the_wall_clock_is_set_back(served: Served) -> None:
    with Membership(served.bootstrap_servers) as silent, Membership(served.bootstrap_servers) as alive:
        settle(alive, silent)
        served.set_back()
        served.let_pass(9)
        assert alive.beat() == ErrorCode.NONE
        assert len(describe(alive.wire).members) == 2
        served.let_pass(2)
        eventually(lambda: len(describe(alive.wire).members) == 1)
        assert alive.beat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_waiting_fetch_is_answered_in_time_when_the_wall_clock_is_set_back(served: Served) -> None:
    request, partition = fetch("t", max_wait_ms=60_000), served.server.node.partitions.find("t", 0)
    assert partition is not None

    def waiting() -> int:
        return len(partition.waiting)

    with Wire(served.bootstrap_servers) as wire, Wire(served.bootstrap_servers) as other:
        wire.send(request, 12)
        eventually(lambda: waiting() == 1)
        served.set_back()
        served.let_pass(59)
        other.metadata()
        assert waiting() == 1
        served.let_pass(2)
        _, answer = wire.receive(request, 12)
        assert not answer.responses[0].partitions[0].records
