"""InitProducerId: unique producer ids."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.embedding.embedded_broker import Broker
from ottla.coordination.cluster.records import ProducerIdsRecord, decode_record
from ottla.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.storage.state_log.values import values_in
from tests.broker.wire import Wire


def test_each_producer_gets_its_own_id_in_every_version(wire: Wire) -> None:
    responses = [wire.ask(InitProducerIdRequest(None, 60_000), version) for version in range(6)]
    assert [(r.error_code, r.producer_id, r.producer_epoch) for r in responses] == [(0, n, 0) for n in range(6)]


def test_no_id_is_assigned_twice_across_clean_and_unclean_restarts(tmp_path: Path) -> None:
    given = []
    for _ in range(3):
        with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
            given += [wire.ask(InitProducerIdRequest(None), 4).producer_id for _ in range(3)]
    assert len(set(given)) == len(given)


def test_a_producer_with_its_previous_id_and_epoch_gets_a_new_id(wire: Wire) -> None:
    whole = wire.ask(InitProducerIdRequest(None, 60_000, 7, 3), 4)
    assert (whole.error_code, whole.producer_epoch) == (0, 0)
    assert whole.producer_id != 7
    for half in (
        InitProducerIdRequest(None, 60_000, 7, -1),
        InitProducerIdRequest(None, 60_000, -1, 3),
        InitProducerIdRequest(None, 60_000, -2, -1),
    ):
        response = wire.ask(half, 4)
        assert (response.error_code, response.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_the_metadata_record_which_broker_has_a_block_of_ids(tmp_path: Path) -> None:
    with Broker(tmp_path, node_id=7) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(InitProducerIdRequest(None), 4)
    records = map(decode_record, values_in(tmp_path / "__cluster_metadata-0"))
    assert [record.broker_id for record in records if isinstance(record, ProducerIdsRecord)] == [7]
