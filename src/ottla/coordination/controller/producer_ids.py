"""AllocateProducerIds: a broker gets a block of producer ids to assign to its producers (KIP-730)."""

from __future__ import annotations

from ottla.coordination.cluster.records import ProducerIdsRecord
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.heartbeats import find_epoch_error
from ottla.errors import ErrorCode
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

BLOCK = 1000
LAST = 2**63 - 1


def allocate_producer_ids(draft: ClusterDraft, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """Return the next block. It is recorded, so that no broker ever gets the same ids."""
    error = find_epoch_error(draft, request.broker_id, request.broker_epoch)
    first = draft.metadata.next_producer_id
    if not error and first > LAST - BLOCK:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error:
        return AllocateProducerIdsResponse(error_code=error)
    draft.write(ProducerIdsRecord(request.broker_id, request.broker_epoch, first + BLOCK))
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK)
