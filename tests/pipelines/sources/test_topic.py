"""Topics as sources: what Spark's source is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.sources.topic import TopicSource
from ottla.pipelines.surroundings import SERVERS, Surroundings

AVRO = '{"type": "record", "name": "Order", "fields": []}'


class Asked:
    """A session whose streams are what they were asked for."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.readStream = self

    def format(self, name: str) -> Asked:
        return self

    def options(self, **told: str) -> Asked:
        self.told = told
        return self

    def load(self) -> dict[str, str]:
        return self.told


@pytest.mark.parametrize(
    ("given", "told"),
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
def test_files_of_schemas_lie_beside_the_pipeline_file(given: dict[str, str], told: dict[str, str]) -> None:
    around = Surroundings(folder=Path("/files"), kafka={SERVERS: "127.0.0.1:1"})
    spark: Any = Asked()
    options = TopicSource(type="topic", topic="orders", **given).load(spark, around)
    assert told.items() <= options.items()
