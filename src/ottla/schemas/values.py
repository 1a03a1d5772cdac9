"""The values that a schema registry stores, with Confluent's names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr


class SchemaReference(Struct, frozen=True):
    """Another schema that a schema uses: `name` is how the text refers to it."""

    name: str | None
    subject: str | None
    version: int | None


class Schema(Struct, frozen=True):
    """A schema: its text, type (AVRO, JSON, PROTOBUF) and references.

    `metadata` and `rule_set` are the objects of the REST interface as dicts; they are registered and returned unchanged.
    """

    schema_str: str | None
    schema_type: str | None = "AVRO"
    references: Sequence[SchemaReference] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "references", tuple(self.references or ()))

    def identity(self) -> tuple[Any, ...]:
        """Return a hashable value that is equal for equal schemas."""
        rest = [part and json.dumps(part, sort_keys=True) for part in (self.metadata, self.rule_set)]
        return (self.schema_str, self.schema_type, self.references, *rest)

    def __hash__(self) -> int:
        return hash(self.identity())

    def readable_text(self) -> str:
        """Return the text, JSON indented."""
        text = self.schema_str or ""
        try:
            return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return text

    def to_dict(self) -> dict[str, Any]:
        """Return the body of a request."""
        body: dict[str, Any] = {"schema": self.schema_str, "schemaType": self.schema_type or "AVRO"}
        if self.references:
            body["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in self.references
            ]
        if self.metadata is not None:
            body["metadata"] = self.metadata
        if self.rule_set is not None:
            body["ruleSet"] = self.rule_set
        return body

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Return the schema of a response."""
        references = [
            SchemaReference(one.get("name"), one.get("subject"), one.get("version"))
            for one in data.get("references") or ()
        ]
        return cls(
            data.get("schema"), data.get("schemaType") or "AVRO", references, data.get("metadata"), data.get("ruleSet")
        )


class RegisteredSchema(Struct, frozen=True):
    """A schema with its place in the registry. Fields that the registry did not return are None."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RegisteredSchema:
        """Return the registered schema of a response."""
        return cls(data.get("subject"), data.get("version"), data.get("id"), data.get("guid"), Schema.from_dict(data))


class SchemaVersion(Struct, frozen=True):
    """A version of a subject."""

    subject: str | None
    version: int | None


class ServerConfig(Struct, frozen=True):
    """The config of a subject, or the global one. Fields that are None are not set."""

    compatibility: str | None = None
    compatibility_level: str | None = None
    compatibility_group: str | None = None
    default_metadata: Mapping[str, Any] | None = None
    override_metadata: Mapping[str, Any] | None = None
    default_rule_set: Mapping[str, Any] | None = None
    override_rule_set: Mapping[str, Any] | None = None
    normalize: bool | None = None
    alias: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the body of a request."""
        return {name: value for field, name in CONFIG_NAMES.items() if (value := getattr(self, field)) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ServerConfig:
        """Return the config of a response."""
        return cls(**{field: data.get(name) for field, name in CONFIG_NAMES.items()})


CONFIG_NAMES = {
    "compatibility": "compatibility",
    "compatibility_level": "compatibilityLevel",
    "compatibility_group": "compatibilityGroup",
    "default_metadata": "defaultMetadata",
    "override_metadata": "overrideMetadata",
    "default_rule_set": "defaultRuleSet",
    "override_rule_set": "overrideRuleSet",
    "normalize": "normalize",
    "alias": "alias",
}
"""The name of each field in the REST interface."""
