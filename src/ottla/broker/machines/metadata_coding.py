"""How records of the metadata stand in their log: as values without keys."""

from __future__ import annotations

from ottla.broker.machines.runtime import Coding
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.coordination.cluster.replaying import replay_all

METADATA_CODING = Coding(
    lambda record: (None, encode_record(record)),
    lambda key, value: decode_record(value or b""),
    replay_all=replay_all,
)
