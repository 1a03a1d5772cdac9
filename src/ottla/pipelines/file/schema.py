"""The pipeline file as JSON Schema, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from ottla.pipelines.file.pipeline_file import PipelineFile
from ottla.pipelines.model import WithTexts
from ottla.pipelines.transforms import CONNECT, PREDICATES
from ottla.pipelines.transforms.connect.connect_transform import KEY, PACKAGE, VALUE

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the schema of a whole file."""
    schema = PipelineFile.model_json_schema(schema_generator=WithTexts)
    for name, transform in CONNECT.items():
        ends = ("", KEY, VALUE) if transform.has_parts else ("",)
        names_of(schema, name)["enum"] = [f"{start}{name}{end}" for start in ("", PACKAGE) for end in ends]
    for name in PREDICATES:
        names_of(schema, name)["enum"] = [name, f"{PACKAGE}predicates.{name}"]
    return {"$schema": DIALECT, **schema, "title": "Ottla pipelines"}


def names_of(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of the key `type` of a model."""
    found: dict[str, Any] = schema["$defs"][name]["properties"]["type"]
    return found
