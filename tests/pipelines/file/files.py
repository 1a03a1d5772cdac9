"""A pipeline file that is right, and how tests read what they make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.pipelines.file.reading import PipelineDefinition, read_text
from ottla.pipelines.place import PipelineFileError

WHOLE = """\
# Comments stay where they are.
settings: {bootstrap.servers: "127.0.0.1:9092", checkpoints: state/}
pipelines:
  orders-in:
    source: {type: files, format: csv, path: in, schema: "id bigint, card string", options: {header: true}}
    transforms:
      - {type: InsertField, static.field: shop, static.value: seoul}
      - {type: MaskField, fields: [card]}
      - {type: Cast$Value, spec: "id:string"}
    sink: {type: topic, topic: orders, key: id, valueFormat: json, deliveryGuarantee: exactly_once}
  revenue:
    source: {type: topic, topic: orders, valueFormat: json, valueSchema: "id bigint, at timestamp, amount double"}
    predicates:
      gone: {type: RecordIsTombstone}
    transforms:
      - {type: Filter, predicate: gone}
      - sql: select window(at, '1 minute').start as minute, sum(amount) as revenue from input group by window(at, '1 minute')
        watermark: {column: at, delay: 10 seconds}
    sink: {type: delta, path: lake/revenue}
    errors: {tolerance: all, deadLetterTopic: orders-dead}
"""


def read(text: str | bytes, **environment: str) -> list[PipelineDefinition]:
    data = text.encode() if isinstance(text, str) else text
    return read_text(data, "p.yaml", Path(), environment)


def mistakes(text: str | bytes, **environment: str) -> list[str]:
    """Return the mistakes of a file, one in a line."""
    with pytest.raises(PipelineFileError) as error:
        read(text, **environment)
    return [str(one) for one in error.value.mistakes]


def pipeline(
    source: str = "{type: rate}", transforms: str = "[]", sink: str = "{type: console}", more: str = ""
) -> str:
    """A file with one pipeline, each part in a line of its own: source 3, transforms 4, sink 5, more 6."""
    return f"pipelines:\n p:\n  source: {source}\n  transforms: {transforms}\n  sink: {sink}\n{'  ' + more if more else ''}"
