"""Kafka's message definitions, if a copy is available, to compare Ottla's declarations with.

The definitions of Kafka 4.4 are in `shared/kafka-messages-4.4`, those of 4.3 in `shared/kafka-messages`, beside the repository or
above it. The environment variable OTTLA_KAFKA_MESSAGES may name another folder for those of 4.4. Tests that need a missing folder are
skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import ZERO_UUID, Message, Range


def copy_of(name: str) -> Path:
    """Return the folder `shared/<name>` that is nearest above the repository."""
    folders = [parent / "shared" / name for parent in Path(__file__).resolve().parents[3:]]
    return next((each for each in folders if each.is_dir()), folders[0])


FOLDER = Path(os.environ.get("OTTLA_KAFKA_MESSAGES") or copy_of("kafka-messages-4.4")).resolve()
OLDER_FOLDER = copy_of("kafka-messages")
ABSENT = f"Kafka's message definitions are not in {FOLDER}; OTTLA_KAFKA_MESSAGES may name another folder"
KIND_NAMES = {kind: name for name, kind in KINDS.items()}
ZERO_VALUES: dict[str, Any] = {
    "string": "",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
}
Facts = dict[str, Any]
# Kafka's definition has a field for version 0 only, which Kafka 4.1 removed; no supported version has it.
REMOVED_FIELD = "refuses [], Kafka {'partitionmaxbytes'}"
DIFFERENT = {
    "ShareFetchRequest": [f"v{version}.topics.partitions: {REMOVED_FIELD}" for version in (1, 2)],
}
"""The differences from Kafka 4.4."""


def definition(path: str, folder: Path = FOLDER) -> Facts:
    """One of Kafka's files, which are JSON with comments."""
    text = re.sub(r"^\s*//.*$", "", folder.joinpath(path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: Facts = json.loads(text)
    parts = {part["name"]: part["fields"] for part in found.get("commonStructs", ())}
    return {**found, "fields": [with_parts(field, parts) for field in found.get("fields", ())]}


def with_parts(field: Facts, parts: dict[str, list[Facts]]) -> Facts:
    """Return a field with the fields of its struct, also if Kafka defines them in `commonStructs`."""
    inner = field.get("fields") or parts.get(field["type"].removeprefix("[]"))
    # A field with a tag may lack the versions in which it exists; they are those of its tag.
    field = {"versions": field.get("taggedVersions"), **field}
    return {**field, "fields": [with_parts(each, parts) for each in inner]} if inner else field


def differences(cls: type[Message], facts: Facts) -> list[str]:
    """Return the differences between Ottla's declaration and Kafka's, as sentences."""
    found = []
    for name, ours, theirs in (
        ("key", cls.KEY, facts["apiKey"]),
        ("versions", cls.VERSIONS, Range.parse(facts["validVersions"])),
        ("flexible", cls.FLEXIBLE, Range.parse(facts["flexibleVersions"])),
    ):
        if ours != theirs:
            found.append(f"{name}: {ours}, in Kafka {theirs}")
    return found + field_differences_of(cls, facts, Range.parse(facts["validVersions"]))


def field_differences_of(cls: type[Message], facts: Facts, versions: Range) -> list[str]:
    """Return the differences between the fields, in those of our versions that are in `versions`."""
    found: list[str] = []
    for version in range(max(cls.VERSIONS.first, versions.first), min(cls.VERSIONS.last, versions.last) + 1):
        found += struct_differences(f"v{version}", plan_of(cls, version), facts["fields"], version)
    return found


def struct_differences(path: str, plan: Plan, theirs: list[Facts], version: int) -> Iterator[str]:
    """The differences of one struct in one version."""
    here = [facts for facts in theirs if version in Range.parse(facts["versions"])]
    tagged = [facts for facts in here if "tag" in facts and version in Range.parse(facts["taggedVersions"])]
    ours, expected = [plain(step.name) for step in plan.written], [plain(f["name"]) for f in here if f not in tagged]
    if ours != expected:
        yield f"{path}: {ours}, in Kafka {expected}"
        return
    our_tags = {tag: plain(step.name) for tag, (_, step) in plan.tags.items()}
    their_tags = {facts["tag"]: plain(facts["name"]) for facts in tagged}
    if our_tags != their_tags:
        yield f"{path}: tags {our_tags}, in Kafka {their_tags}"
        return
    refused = {plain(f["name"]) for f in theirs if f not in here and not f.get("ignorable")}
    if refused != {plain(step.name) for step in plan.refused}:
        yield f"{path}: refuses {[step.name for step in plan.refused]}, Kafka {refused}"
    for step, facts in zip(plan.written, [f for f in here if f not in tagged], strict=True):
        yield from field_differences(f"{path}.{step.name}", step, facts, version)
    for facts in tagged:
        step = plan.tags[facts["tag"]][1]
        yield from field_differences(f"{path}.{step.name}", step, facts, version)


def field_differences(path: str, step: Step, facts: Facts, version: int) -> Iterator[str]:
    """The differences of one field in one version."""
    ours, theirs = type_name(step), facts["type"]
    if ours != theirs:
        yield f"{path}: {ours}, in Kafka {theirs}"
    nullable = version in Range.parse(facts.get("nullableVersions", "none"))
    if step.nullable != nullable:
        yield f"{path}: nullable {step.nullable}, in Kafka {nullable}"
    if not same_default(step.default, facts, is_struct=KIND_NAMES[step.kind] == "struct"):
        yield f"{path}: default {step.default!r}, in Kafka {facts.get('default')!r}"
    inner = step.item if KIND_NAMES[step.kind] == "array" else step
    if "fields" in facts:
        yield from struct_differences(path, inner.item, facts["fields"], version)


def type_name(step: Step) -> str:
    """A step's type as Kafka writes it."""
    kind = KIND_NAMES[step.kind]
    if kind == "array":
        return f"[]{type_name(step.item)}"
    # If a request and its response use one name for different types, the type of the request has a longer name here.
    return str(step.item.make.__name__).removeprefix("Request") if kind == "struct" else kind


def same_default(ours: Any, facts: Facts, *, is_struct: bool) -> bool:
    """True if a default equals Kafka's; null is accepted if Kafka has no default and allows null."""
    given = facts.get("default")
    if given == "null" or is_struct:
        return ours is None
    if given is None:
        zero = () if facts["type"].startswith("[]") else ZERO_VALUES.get(facts["type"], 0)
        return ours == zero or (ours is None and "nullableVersions" in facts)
    if isinstance(ours, bool):
        return str(ours).lower() == str(given).lower()
    expected: object = int(str(given), 0) if isinstance(ours, int) else given
    return bool(ours == expected)


def plain(name: str) -> str:
    """A field's name whatever its case."""
    return name.replace("_", "").lower()
