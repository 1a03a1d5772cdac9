"""Topics as sources: the options for Spark's source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.pipeline_context import SERVERS, PipelineContext
from ottla.pipelines.sources.topic import TopicSource

AVRO = '{"type": "record", "name": "Order", "fields": []}'


class Asked:
    """A session that records the options of its streams."""

    def __init__(self) -> None:
        self.reported: dict[str, str] = {}
        self.readStream = self

    def format(self, name: str) -> Asked:
        return self

    def options(self, **message: str) -> Asked:
        self.reported = message
        return self

    def load(self) -> dict[str, str]:
        return self.reported


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"valueFormat": "avro", "valueSchema": "order.avsc"}, {"valueSchema": "/files/order.avsc"}),
        ({"keyFormat": "avro", "keySchema": "/other/key.avsc"}, {"keySchema": "/other/key.avsc"}),
        ({"valueFormat": "avro", "valueSchema": f" {AVRO}"}, {"valueSchema": f" {AVRO}"}),
        ({"valueFormat": "json", "valueSchema": "id bigint"}, {"valueSchema": "id bigint"}),
        (
            {"valueFormat": "protobuf", "valueDescriptor": "o.desc", "valueMessage": "Order"},
            {"valueDescriptor": "/files/o.desc", "valueMessage": "Order"},
        ),
    ],
)
def test_files_of_schemas_lie_next_to_the_pipeline_file(given: dict[str, str], expected: dict[str, str]) -> None:
    context = PipelineContext(folder=Path("/files"), kafka={SERVERS: "127.0.0.1:1"})
    spark: Any = Asked()
    options = TopicSource(type="topic", topic="orders", **given).load(spark, context)
    assert expected.items() <= options.items()
