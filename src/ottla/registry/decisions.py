"""Decisions about requests to a registry: records to write, and the response once they are read back.

Functions here take the state and change nothing. A registration has two halves, because parsing and comparing may take
long and happens in a thread: `draft_registration` collects from the state what is needed, `examine` parses and compares
without the state, and `decide_registration` returns the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ottla.registry import errors, records
from ottla.registry.compatibility import DEFAULT_LEVEL, LEVELS, Earlier, check_compatibility
from ottla.registry.errors import InvalidSchemaError, SchemaLimitError
from ottla.registry.kinds.kind import MOST_REFERENCES, MOST_TEXT, MOST_TEXT_WITH_REFERENCES, NamedText
from ottla.registry.parsed_schemas import ParsedSchemas
from ottla.registry.records import Content, Record, Reference
from ottla.registry.state import RegistryState, Version
from ottla.registry.subjects import context_of, is_valid_subject, qualify, qualify_reference

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)
KINDS = (records.JSON, records.PROTOBUF, records.AVRO)
LATEST = -1
CONFIG_MEMBERS = {
    "alias": str,
    "normalize": bool,
    "validateFields": bool,
    "validateRules": bool,
    "compatibilityPolicy": str,
    "compatibilityGroup": str,
    "defaultMetadata": dict,
    "overrideMetadata": dict,
    "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}
"""The members of a config besides the compatibility level, and their types."""


class Metadata(msgspec.Struct, frozen=True):
    """The members of metadata, to check their types."""

    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """The members of a rule, to check their types."""

    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


class RuleSet(msgspec.Struct, frozen=True, rename="camel"):
    """The members of a rule set, to check their types."""

    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None


SHAPES = {"Metadata": Metadata, "RuleSet": RuleSet}


class SchemaRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a request with a schema."""

    schema: str = ""
    schema_type: str | None = None
    references: list[Reference] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    id: int | None = None
    version: int | None = None


class Decision(msgspec.Struct, frozen=True):
    """Records to write in this order, and the response once they are read back."""

    records: tuple[Record, ...]
    response: Any


class Comparable(msgspec.Struct, frozen=True):
    """A content with the texts that it refers to."""

    version: int
    content: Content
    references: tuple[NamedText, ...]


class Draft(msgspec.Struct, frozen=True):
    """A schema to examine, with all that the examination needs."""

    subject: str
    content: Content
    references: tuple[NamedText, ...]
    is_normalized: bool
    level: str = "NONE"
    earlier: tuple[Comparable, ...] = ()


class Examined(msgspec.Struct, frozen=True):
    """An examined schema: its content in canonical form, and why it is incompatible."""

    content: Content
    messages: tuple[str, ...]


# References


def resolve_references(state: RegistryState, subject: str, content: Content) -> tuple[NamedText, ...]:
    """Return the texts that a content refers to, each before those that refer to it.

    Raise InvalidSchemaError for a missing reference, SchemaLimitError for too many. Cycles cannot be registered, but a
    topic may contain them; each version is visited once.
    """
    found: dict[tuple[str, int], NamedText | None] = {}
    names: dict[str, tuple[str, int]] = {}
    size = len(content.text)
    pending: list[tuple[str, Reference, bool]] = [(subject, each, False) for each in reversed(content.references)]
    while pending:
        parent, reference, is_done = pending.pop()
        target = qualify_reference(parent, reference.subject), reference.version
        entry = state.version(*target)
        if entry is None:
            raise InvalidSchemaError(
                f"no schema for reference {reference.name!r}: subject {target[0]!r} has no version {target[1]}"
            )
        if is_done:
            found.pop(target)  # to the end, behind its own references
            found[target] = NamedText(reference.name, entry.content.text)
            continue
        if target in found:
            continue
        if names.setdefault(reference.name, target) != target:
            raise InvalidSchemaError(
                f"reference name {reference.name!r} is used for two schemas: give each reference one name"
            )
        found[target] = None
        size += len(entry.content.text)
        if len(found) > MOST_REFERENCES or size > MOST_TEXT_WITH_REFERENCES:
            raise SchemaLimitError(
                f"the schema refers to more than {MOST_REFERENCES} schemas or {MOST_TEXT_WITH_REFERENCES} characters"
            )
        pending.append((parent, reference, True))
        pending.extend((target[0], each, False) for each in reversed(entry.content.references))
    return tuple(each for each in found.values() if each is not None)


# Registration


def read_request(
    state: RegistryState, subject: str, request: SchemaRequest, *, may_be_deleted: bool = False
) -> Content:
    """Return the content of a request, with the versions of its references as numbers."""
    kind = request.schema_type or records.AVRO
    if kind not in KINDS:
        raise errors.invalid_schema(f"invalid schema type {kind!r}: expected AVRO, JSON or PROTOBUF")
    if not request.schema.strip():
        raise errors.invalid_schema("the schema is empty")
    if len(request.schema) > MOST_TEXT:
        raise errors.schema_too_large(
            f"the schema has {len(request.schema)} characters, and {MOST_TEXT} are allowed: split it by references"
        )
    given = request.references or []
    if len(given) > MOST_REFERENCES:
        raise errors.invalid_schema(f"the schema has {len(given)} references, and {MOST_REFERENCES} are allowed")
    found = []
    for each in given:
        versions = state.versions(qualify_reference(subject, each.subject), with_deleted=may_be_deleted)
        number = versions[-1].version if each.version == LATEST and versions else each.version
        if all(one.version != number for one in versions):
            raise errors.invalid_schema(
                f"no schema for reference {each.name!r}: subject {each.subject!r} has no version {each.version}"
            )
        found.append(Reference(each.name, each.subject, number))
    check_shape("Metadata", request.metadata)
    check_shape("RuleSet", request.rule_set)
    return Content(kind, request.schema, tuple(found), request.metadata or None, request.rule_set or None)


def check_shape(shape: str, value: Any) -> None:
    """Raise RegistryError if metadata or rules have members of wrong types."""
    if value is None:
        return
    try:
        msgspec.convert(value, SHAPES[shape])
    except msgspec.ValidationError as error:
        code = 42210 if shape == "RuleSet" else 422
        raise errors.RegistryError(422, code, f"invalid {shape[:1].lower()}{shape[1:]}: {error}") from None


def draft_registration(
    state: RegistryState, subject: str, request: SchemaRequest, *, is_normalized: bool = False
) -> Draft:
    """Return what has to be examined for a registration."""
    if not is_valid_subject(subject):
        raise errors.invalid_subject(subject)
    config = state.config(subject)
    content = with_inherited(read_request(state, subject, request), config, state.versions(subject))
    mode = state.mode(subject) or READWRITE
    level = "NONE" if mode == IMPORT else config.get("compatibilityLevel", DEFAULT_LEVEL)
    return make_draft(
        state,
        subject,
        content,
        state.versions(subject),
        level,
        is_normalized=is_normalized or bool(config.get("normalize")),
    )


def make_draft(
    state: RegistryState,
    subject: str,
    content: Content,
    versions: Sequence[Version],
    level: str,
    *,
    is_normalized: bool = False,
) -> Draft:
    """Return a draft that compares a content with earlier versions."""
    group = state.config(subject).get("compatibilityGroup")
    if group:
        versions = [each for each in versions if property_of(each.content, group) == property_of(content, group)]
    rule = LEVELS[level]
    if not (rule.backward or rule.forward):
        versions = ()
    try:
        references = resolve_references(state, subject, content)
        earlier = tuple(
            Comparable(each.version, each.content, resolve_references(state, each.subject, each.content))
            for each in (versions if rule.transitive else versions[-1:])
        )
    except InvalidSchemaError as error:
        raise errors.invalid_schema(str(error)) from None
    return Draft(subject, content, references, is_normalized, level, earlier)


def property_of(content: Content, name: str) -> Any:
    """Return a property of a content's metadata."""
    return ((content.metadata or {}).get("properties") or {}).get(name)


def with_inherited(content: Content, config: Mapping[str, Any], versions: Sequence[Version]) -> Content:
    """Return the content with the metadata and rules of the last version, if it has none, and those of the config."""
    last = versions[-1].content if versions else None
    metadata, rules = content.metadata, content.rule_set
    if metadata is None and last is not None:
        metadata = last.metadata
    if rules is None and last is not None:
        rules = last.rule_set
    for before, after in (("defaultMetadata", None), (None, "overrideMetadata")):
        metadata = merge_members(config.get(before or ""), metadata)
        metadata = merge_members(metadata, config.get(after or ""))
    for before, after in (("defaultRuleSet", None), (None, "overrideRuleSet")):
        rules = merge_rules(config.get(before or ""), rules)
        rules = merge_rules(rules, config.get(after or ""))
    return msgspec.structs.replace(content, metadata=metadata or None, rule_set=rules or None)


def merge_members(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return metadata in which the members of `second` override those of `first`."""
    if not first or not second:
        return dict(first or second or {}) or None
    merged: dict[str, Any] = {}
    for name in ("tags", "properties"):
        together = {**(first.get(name) or {}), **(second.get(name) or {})}
        if together:
            merged[name] = together
    sensitive = sorted({*(first.get("sensitive") or ()), *(second.get("sensitive") or ())})
    return {**merged, "sensitive": sensitive} if sensitive else merged


def merge_rules(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return rules in which those of `second` replace those of `first` with the same name."""
    if not first or not second:
        return dict(first or second or {}) or None
    merged = {}
    for name in ("migrationRules", "domainRules", "encodingRules"):
        later = list(second.get(name) or ())
        taken = {each.get("name") for each in later}
        together = [each for each in first.get(name) or () if each.get("name") not in taken] + later
        if together:
            merged[name] = together
    return merged


def examine(draft: Draft, schemas: ParsedSchemas) -> Examined:
    """Parse and compare. Uses no state, and may run in any thread.

    Raise RegistryError for an invalid schema.
    """
    content = draft.content
    try:
        parsed = schemas.parse(content, draft.references)
    except InvalidSchemaError as error:
        raise errors.invalid_schema(f"invalid {content.kind} schema: {error}") from None
    try:
        earlier = [
            Earlier(each.version, each.content.kind, schemas.parse(each.content, each.references))
            for each in draft.earlier
        ]
        messages = check_compatibility(draft.level, content.kind, parsed, earlier)
        text = parsed.normalized() if draft.is_normalized else parsed.canonical
        text.encode()  # fails for half of a surrogate pair
    except InvalidSchemaError as error:
        raise errors.invalid_schema(f"the schema cannot be compared with earlier versions: {error}") from None
    except RecursionError:
        raise errors.invalid_schema("the types of the schema are nested too deeply to be compared") from None
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:  # values that no rule foresees
        raise errors.invalid_schema(f"invalid {content.kind} schema: {type(error).__name__}: {error}") from None
    return Examined(msgspec.structs.replace(content, text=text), tuple(messages))


def find_version(state: RegistryState, subject: str, content: Content, *, with_deleted: bool = False) -> Version | None:
    """Return the newest version of a subject with a content.

    A content without metadata and rules also matches a version that has some.
    """
    versions = state.versions(subject, with_deleted=with_deleted)
    for each in reversed(versions):
        if each.content == content:
            return each
    if content.metadata is None and content.rule_set is None:
        plain = content.kind, content.text, content.references
        for each in reversed(versions):
            if (each.content.kind, each.content.text, each.content.references) == plain:
                return each
    return None


def check_writable(state: RegistryState, subject: str | None) -> str:
    """Return the mode of a subject; raise RegistryError if the mode forbids changes."""
    if state.own_mode(None) == READONLY_OVERRIDE:
        raise errors.not_permitted("the registry is in read-only mode: set the mode to READWRITE first")
    mode = state.mode(subject) or READWRITE
    if mode in (READONLY, READONLY_OVERRIDE):
        raise errors.not_permitted(f"Subject {subject} is in read-only mode: set its mode to READWRITE first")
    return mode


def decide_registration(state: RegistryState, draft: Draft, examined: Examined, request: SchemaRequest) -> Decision:
    """Return the record of a new version, or only the response if the subject has the schema already."""
    subject, content = draft.subject, examined.content
    context = context_of(subject)
    mode = check_writable(state, subject)
    given_id = request.id if request.id is not None and request.id >= 0 else None
    given_version = request.version if request.version is not None and request.version > 0 else None
    for name, number in (("id", given_id), ("version", given_version)):
        if number is not None and number > records.HIGHEST_NUMBER:
            raise errors.invalid_schema(f"invalid {name} {number}: expected at most {records.HIGHEST_NUMBER}")
    same = find_version(state, subject, content)
    if same is not None and given_id in (None, same.id) and (mode != IMPORT or given_version in (None, same.version)):
        return Decision((), registered(same))
    if given_id is not None and mode != IMPORT:
        raise errors.not_permitted(f"Subject {subject} is not in import mode: an id may be given in mode IMPORT alone")
    if examined.messages:
        raise errors.incompatible_schema(
            f"Schema being registered is incompatible with an earlier schema for subject '{subject}', "
            f"details: [{', '.join(examined.messages)}]"
        )
    every = state.versions(subject, with_deleted=True)
    version = every[-1].version + 1 if every else 1
    if given_version is not None:
        if mode != IMPORT and given_version != version:
            raise errors.invalid_schema(f"version {given_version} is not the next version, which is {version}")
        version = given_version
    known = state.id_of(context, content.digest())
    schema_id = given_id if given_id is not None else known
    if schema_id is None:
        schema_id = state.highest_id(context) + 1
    holder = state.content(context, schema_id)
    if holder is not None and holder != content:
        raise errors.id_does_not_match(
            f"Overwrite new schema with id {schema_id} is not permitted: it has another schema"
        )
    entry = Version(subject, version, schema_id, content)
    return Decision((records.schema_record(subject, version, schema_id, content),), registered(entry))


def registered(entry: Version) -> dict[str, Any]:
    """Return the response to a registration.

    The schema is not part of it: clients would cache its canonical text instead of their own form.
    """
    return {"id": entry.id, "version": entry.version, "guid": entry.content.guid()}


# Responses


def content_to_json(content: Content) -> dict[str, Any]:
    """Return the members of a content in a response; the type AVRO is left out, as old clients expect."""
    body: dict[str, Any] = {"schemaType": content.kind} if content.kind != records.AVRO else {}
    if content.references:
        body["references"] = records.references_to_json(content.references)
    if content.metadata is not None:
        body["metadata"] = content.metadata
    if content.rule_set is not None:
        body["ruleSet"] = content.rule_set
    body["schema"] = content.text
    return body


def version_to_json(entry: Version, text: str | None = None, *, with_deleted: bool = False) -> dict[str, Any]:
    """Return a version as the body of a response."""
    body: dict[str, Any] = {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.id,
        "guid": entry.content.guid(),
        **content_to_json(entry.content),
    }
    if text is not None:
        body["schema"] = text
    if with_deleted and entry.is_deleted:
        body["deleted"] = True
    return body


def read_version(text: str) -> int:
    """Return a version of a path: a number, or LATEST."""
    if text in ("latest", "-1"):
        return LATEST
    if text.isascii() and text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= records.HIGHEST_NUMBER:
        return int(text)
    raise errors.invalid_version(text)


def find_numbered(state: RegistryState, subject: str, number: int, *, with_deleted: bool = False) -> Version:
    """Return a version of a subject; raise RegistryError if there is none."""
    versions = state.versions(subject, with_deleted=with_deleted)
    if not versions:
        raise errors.subject_not_found(subject)
    if number == LATEST:
        return versions[-1]
    for each in versions:
        if each.version == number:
            return each
    raise errors.version_not_found(number)


# Deletion


def decide_subject_deletion(state: RegistryState, subject: str, *, permanent: bool) -> Decision:
    """Return the records that delete a subject, softly or for good. The response is the list of versions."""
    check_writable(state, subject)
    every = state.versions(subject, with_deleted=True)
    living = [each for each in every if not each.is_deleted]
    if not every:
        raise errors.subject_not_found(subject)
    if permanent and living:
        raise errors.subject_not_soft_deleted(subject)
    if not permanent and not living:
        raise errors.subject_soft_deleted(subject)
    doomed = every if permanent else living
    check_unreferenced(state, doomed)
    numbers = [each.version for each in doomed]
    if permanent:
        return Decision(tuple(records.schema_tombstone(subject, each) for each in numbers), numbers)
    changes = [records.delete_subject_record(subject, numbers[-1])]
    if state.own_config(subject) is not None:
        changes.append(records.config_record(subject, None))
    if state.own_mode(subject) is not None:
        changes.append(records.mode_record(subject, None))
    return Decision(tuple(changes), numbers)


def decide_version_deletion(state: RegistryState, subject: str, number: int, *, permanent: bool) -> Decision:
    """Return the record that deletes a version, softly or for good. The response is the version."""
    check_writable(state, subject)
    entry = find_numbered(state, subject, number, with_deleted=permanent or number != LATEST)
    if permanent and not entry.is_deleted:
        raise errors.version_not_soft_deleted(subject, entry.version)
    if not permanent and entry.is_deleted:
        raise errors.version_soft_deleted(subject, entry.version)
    check_unreferenced(state, [entry])
    if permanent:
        return Decision((records.schema_tombstone(subject, entry.version),), entry.version)
    record = records.schema_record(subject, entry.version, entry.id, entry.content, deleted=True)
    return Decision((record,), entry.version)


def check_unreferenced(state: RegistryState, doomed: Iterable[Version]) -> None:
    """Raise RegistryError if a version is referred to by another one that stays."""
    entries = list(doomed)
    leaving = {(each.subject, each.version) for each in entries}
    for each in entries:
        if any((one.subject, one.version) not in leaving for one in state.referrers(each.subject, each.version)):
            raise errors.reference_exists(each.subject, each.version)


def decide_context_deletion(state: RegistryState, context: str) -> Decision:
    """Return the record that removes an empty context."""
    check_writable(state, qualify(context, ""))
    if state.subjects(qualify(context, ""), with_deleted=True):
        raise errors.context_not_empty(context)
    return Decision((records.context_tombstone(context),), None)


# Config and mode


def read_config(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a config in a request; raise RegistryError for a wrong one."""
    config: dict[str, Any] = {}
    level = body.get("compatibility", body.get("compatibilityLevel"))
    if level is not None:
        if not isinstance(level, str) or level.upper() not in LEVELS:
            raise errors.invalid_compatibility(level)
        config["compatibilityLevel"] = level.upper()
    for name, kind in CONFIG_MEMBERS.items():
        value = body.get(name)
        if value is not None:
            if not isinstance(value, kind):
                raise errors.RegistryError(422, 422, f"invalid value {value!r} for {name}: expected {kind.__name__}")
            for shape in SHAPES:
                if name.endswith(shape):
                    check_shape(shape, value)
            config[name] = value
    if not config and not any(name in body for name in ("compatibility", "compatibilityLevel", *CONFIG_MEMBERS)):
        raise errors.invalid_compatibility(None)
    return config


def decide_config(state: RegistryState, subject: str | None, body: Mapping[str, Any]) -> Decision:
    """Return the record that sets a config. Members that the request lacks keep their values."""
    if subject is not None and not is_valid_scope(subject):
        raise errors.invalid_subject(subject)
    check_writable(state, subject)
    given = read_config(body)
    config = {**(state.own_config(subject) or {}), **given}
    response = {("compatibility" if name == "compatibilityLevel" else name): value for name, value in given.items()}
    return Decision((records.config_record(subject, config),), response)


def decide_config_deletion(state: RegistryState, subject: str | None) -> Decision:
    """Return the record that deletes a config. The response is the config that was in force."""
    check_writable(state, subject)
    own = state.own_config(subject)
    if own is None and subject is not None:
        raise errors.subject_not_found(subject)
    return Decision((records.config_record(subject, None),), own or {"compatibilityLevel": DEFAULT_LEVEL})


def is_valid_scope(subject: str) -> bool:
    """Return True if a config or a mode may be set for the text: a subject, or a context as `:.name:`."""
    return is_valid_subject(subject) or (subject.startswith(":.") and subject.endswith(":"))


def decide_mode(state: RegistryState, subject: str | None, mode: object, *, force: bool) -> Decision:
    """Return the record that sets a mode. IMPORT needs an empty subject, or `force`."""
    if subject is not None and not is_valid_scope(subject):
        raise errors.invalid_subject(subject)
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise errors.invalid_mode(mode)
    mode = mode.upper()
    if mode == IMPORT and not force and (state.mode(subject) or READWRITE) != IMPORT and has_versions(state, subject):
        raise errors.not_permitted(
            "cannot change to mode IMPORT, because there are subjects: delete them, or give force=true"
        )
    return Decision((records.mode_record(subject, mode),), {"mode": mode})


def has_versions(state: RegistryState, scope: str | None) -> bool:
    """Return True if a scope has versions that are not deleted."""
    if scope is not None and is_valid_subject(scope):
        return bool(state.versions(scope))
    return bool(state.subjects(scope or ":*:"))


def decide_mode_deletion(state: RegistryState, subject: str) -> Decision:
    """Return the record that deletes the mode of a subject. The response is the deleted mode."""
    mode = state.own_mode(subject)
    if mode is None:
        raise errors.subject_not_found(subject)
    return Decision((records.mode_record(subject, None),), {"mode": mode})
