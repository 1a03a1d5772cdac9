"""Keys and values of the topic `_schemas`, as Confluent's registry writes them.

The order of the members of a key is part of the format, because compaction compares bytes. Pure.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

SCHEMA, CONFIG, MODE, NOOP = "SCHEMA", "CONFIG", "MODE", "NOOP"
DELETE_SUBJECT, CLEAR_SUBJECT, CONTEXT = "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT"
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
HIGHEST_NUMBER = (1 << 31) - 1
"""The highest id, and the highest version: serialized values have an id of 32 bits."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Reference(msgspec.Struct, frozen=True):
    """A schema that another schema imports: the name in its text, and where it is registered."""

    name: str
    subject: str
    version: int


class Content(msgspec.Struct, frozen=True):
    """The content of an id."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None

    def digest(self) -> bytes:
        """Return the MD5 of the content, from which Confluent's registry also derives the guid."""
        md5 = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            md5.update(reference.name.encode())
            md5.update(reference.subject.encode())
            md5.update(struct.pack(">i", reference.version))
        if self.metadata is not None:
            md5.update(b"\x01")
            for name, tags in sorted((self.metadata.get("tags") or {}).items()):
                md5.update(name.encode() + "".join(sorted(tags)).encode())
            for name, value in sorted((self.metadata.get("properties") or {}).items()):
                md5.update(name.encode() + value.encode())
            for name in sorted(self.metadata.get("sensitive") or ()):
                md5.update(name.encode())
        if self.rule_set is not None:
            md5.update(b"\x01")
            for group in ("migrationRules", "domainRules", "encodingRules"):
                for rule in self.rule_set.get(group) or ():
                    update_with_rule(md5, rule)
        return md5.digest()

    def guid(self) -> str:
        """Return the globally unique id of the content."""
        return str(uuid.UUID(bytes=self.digest()))


def update_with_rule(md5: Any, rule: Mapping[str, Any]) -> None:
    """Add a rule to a digest."""
    for member in ("name", "doc", "kind", "mode", "type"):
        md5.update((rule.get(member) or "").encode())
    for tag in sorted(rule.get("tags") or ()):
        md5.update(tag.encode())
    for name, value in sorted((rule.get("params") or {}).items()):
        md5.update(name.encode() + str(value).encode())
    for member in ("expr", "onSuccess", "onFailure"):
        md5.update((rule.get(member) or "").encode())
    if rule.get("disabled"):
        md5.update(b"\x01")


class Record(msgspec.Struct, frozen=True):
    """A record to write: key and value in bytes; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


def schema_key(subject: str, version: int) -> bytes:
    return encode({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def schema_record(subject: str, version: int, schema_id: int, content: Content, *, deleted: bool = False) -> Record:
    """Return the record of one version of a subject."""
    value: dict[str, Any] = {"subject": subject, "version": version, "id": schema_id, "guid": content.guid()}
    if content.kind != AVRO:
        value["schemaType"] = content.kind
    if content.references:
        value["references"] = references_to_json(content.references)
    if content.metadata is not None:
        value["metadata"] = content.metadata
    if content.rule_set is not None:
        value["ruleSet"] = content.rule_set
    value["schema"] = content.text
    value["deleted"] = deleted
    return Record(schema_key(subject, version), encode(value))


def references_to_json(references: Sequence[Reference]) -> list[dict[str, Any]]:
    """Return references as they are in records and responses."""
    return [{"name": each.name, "subject": each.subject, "version": each.version} for each in references]


def schema_tombstone(subject: str, version: int) -> Record:
    return Record(schema_key(subject, version), None)


def config_record(subject: str | None, config: Mapping[str, Any] | None) -> Record:
    """Return the record that sets a config, or deletes it with None."""
    key = encode({"keytype": CONFIG, "subject": subject, "magic": 0})
    return Record(key, None if config is None else encode({"subject": subject, **config}))


def mode_record(subject: str | None, mode: str | None) -> Record:
    """Return the record that sets a mode, or deletes it with None."""
    key = encode({"keytype": MODE, "subject": subject, "magic": 0})
    return Record(key, None if mode is None else encode({"subject": subject, "mode": mode}))


def delete_subject_record(subject: str, version: int) -> Record:
    """Return the record that soft-deletes the versions of a subject up to `version`."""
    key = encode({"keytype": DELETE_SUBJECT, "subject": subject, "magic": 0})
    return Record(key, encode({"subject": subject, "version": version}))


def context_record(context: str) -> Record:
    """Return the record that makes a context known."""
    key = encode({"keytype": CONTEXT, "tenant": "default", "context": context, "magic": 0})
    return Record(key, encode({"tenant": "default", "context": context}))


def context_tombstone(context: str) -> Record:
    return Record(context_record(context).key, None)


def noop_record() -> Record:
    """Return a record that changes nothing; a new leader reads up to its own one."""
    return Record(encode({"keytype": NOOP, "magic": 0}), None)


def content_of(value: Mapping[str, Any]) -> Content:
    """Return the content of a SCHEMA record's value; raise KeyError, TypeError or ValueError if it is malformed."""
    references = tuple(
        Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
        for each in value.get("references") or ()
    )
    text = value["schema"]
    if not isinstance(text, str):
        raise TypeError("schema is not a text")
    return Content(
        value.get("schemaType") or AVRO, text, references, value.get("metadata") or None, value.get("ruleSet") or None
    )
