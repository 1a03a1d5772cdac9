"""The state of a registry: what the records of `_schemas` say so far.

`replay` is the only way to change it, in the order of the topic. It has no clock, no connection and no lock; its user
calls it from one thread. A record that cannot be read is skipped with a reason, so that one bad record does not stop a
registry. Two versions with the same content in one context have the same id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ottla.registry import records
from ottla.registry.records import Content
from ottla.registry.subjects import (
    DEFAULT_CONTEXT,
    context_of,
    has_prefix,
    is_context_only,
    normalize_subject,
    qualify,
    qualify_reference,
)


class Version(msgspec.Struct, frozen=True):
    """One version of a subject."""

    subject: str
    version: int
    id: int
    content: Content
    is_deleted: bool = False


class Context(msgspec.Struct):
    """The ids of one context."""

    contents: dict[int, Content] = {}
    ids: dict[bytes, int] = {}
    """Ids by digest of the content."""
    uses: dict[int, set[tuple[str, int]]] = {}
    """The versions of each id, deleted ones included."""
    highest_id: int = 0


class RegistryState:
    """Subjects, versions, ids, configs and modes."""

    def __init__(self) -> None:
        self._contexts: dict[str, Context] = {}
        self._named_contexts: set[str] = {DEFAULT_CONTEXT}
        self._subjects: dict[str, dict[int, Version]] = {}
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}

    # Changes

    def replay(self, key: bytes | None, value: bytes | None) -> str | None:
        """Apply a record. Return None, or the reason for which it was skipped."""
        try:
            fields = records.decode(key or b"")
            change = None if value is None else records.decode(value)
            apply = self.REPLAYS.get(fields["keytype"])
            if apply is None:
                return f"unknown keytype {fields['keytype']!r}"
            apply(self, fields, change)
        except Exception as error:  # other programs write to the topic, too: their records may contain anything
            return f"{type(error).__name__}: {error}"
        return None

    def _replay_schema(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject, version = normalize_subject(str(key["subject"])), int(key["version"])
        if value is None:
            self._remove_version(subject, version)
            return
        content, schema_id = records.content_of(value), int(value["id"])
        digest = content.digest()  # before the first change: it fails for members of wrong types
        if not 1 <= version <= records.HIGHEST_NUMBER or not 0 <= schema_id <= records.HIGHEST_NUMBER:
            raise ValueError(f"version {version} and id {schema_id} are out of range")
        self._remove_version(subject, version)
        name = context_of(subject)
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = Context()
            self._named_contexts.add(name)
        holder = context.contents.setdefault(schema_id, content)
        if holder == content:
            content = holder  # one object for all versions of an id
        context.ids.setdefault(digest, schema_id)
        context.highest_id = max(context.highest_id, schema_id)
        context.uses.setdefault(schema_id, set()).add((subject, version))
        entry = Version(subject, version, schema_id, content, bool(value.get("deleted")))
        versions = self._subjects.setdefault(subject, {})
        versions[version] = entry
        if len(versions) > 1 and version < max(versions):
            self._subjects[subject] = dict(sorted(versions.items()))
        for reference in content.references:
            target = qualify_reference(subject, reference.subject), reference.version
            self._referrers.setdefault(target, set()).add((subject, version))

    def _remove_version(self, subject: str, version: int) -> None:
        versions = self._subjects.get(subject, {})
        entry = versions.pop(version, None)
        if entry is None:
            return
        if not versions:
            del self._subjects[subject]
        context = self._contexts[context_of(subject)]
        uses = context.uses[entry.id]
        uses.discard((subject, version))
        others = [self._subjects[name][number].content for name, number in uses]
        if entry.content not in others:  # the others, if any, collided with it
            digest = entry.content.digest()
            if context.ids.get(digest) == entry.id:
                del context.ids[digest]
            if context.contents[entry.id] == entry.content:
                del context.contents[entry.id]
                if others:
                    context.contents[entry.id] = others[0]
        if not uses:
            del context.uses[entry.id]
        for reference in entry.content.references:
            target = qualify_reference(subject, reference.subject), reference.version
            referrers = self._referrers.get(target, set())
            referrers.discard((subject, version))
            if not referrers:
                self._referrers.pop(target, None)

    def _replay_delete_subject(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        if value is None:
            return
        versions = self._subjects.get(normalize_subject(str(key["subject"])), {})
        for number, entry in versions.items():
            if number <= int(value["version"]) and not entry.is_deleted:
                versions[number] = msgspec.structs.replace(entry, is_deleted=True)

    def _replay_clear_subject(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        if value is None:
            return
        subject = normalize_subject(str(key["subject"]))
        for number, entry in list(self._subjects.get(subject, {}).items()):
            if entry.is_deleted:
                self._remove_version(subject, number)

    def _replay_config(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject = scope_of(key.get("subject"))
        if value is None:
            self._configs.pop(subject, None)
        else:
            self._configs[subject] = {
                name: each for name, each in value.items() if name != "subject" and each is not None
            }

    def _replay_mode(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        subject = scope_of(key.get("subject"))
        if value is None:
            self._modes.pop(subject, None)
        else:
            self._modes[subject] = str(value["mode"])

    def _replay_context(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        (self._named_contexts.discard if value is None else self._named_contexts.add)(str(key["context"]))

    def _replay_noop(self, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        """Change nothing."""

    REPLAYS = {  # noqa: RUF012  # a table, never changed
        records.SCHEMA: _replay_schema,
        records.CONFIG: _replay_config,
        records.MODE: _replay_mode,
        records.NOOP: _replay_noop,
        records.DELETE_SUBJECT: _replay_delete_subject,
        records.CLEAR_SUBJECT: _replay_clear_subject,
        records.CONTEXT: _replay_context,
    }

    # Queries

    def contexts(self) -> list[str]:
        """Return the names of all contexts, sorted."""
        return sorted(self._named_contexts)

    def subjects(self, prefix: str = "", *, with_deleted: bool = False, only_deleted: bool = False) -> list[str]:
        """Return the subjects with a prefix, sorted. A subject is deleted if all of its versions are."""
        return sorted(
            subject
            for subject, versions in list(self._subjects.items())
            if has_prefix(subject, prefix)
            and (
                all(each.is_deleted for each in versions.values())
                if only_deleted
                else with_deleted or any(not each.is_deleted for each in versions.values())
            )
        )

    def versions(self, subject: str, *, with_deleted: bool = False) -> list[Version]:
        """Return the versions of a subject in order; none if it is unknown."""
        return [each for each in list(self._subjects.get(subject, {}).values()) if with_deleted or not each.is_deleted]

    def version(self, subject: str, number: int) -> Version | None:
        """Return a version, deleted or not."""
        return self._subjects.get(subject, {}).get(number)

    def content(self, context: str, schema_id: int) -> Content | None:
        """Return the content of an id."""
        found = self._contexts.get(context)
        return None if found is None else found.contents.get(schema_id)

    def id_of(self, context: str, digest: bytes) -> int | None:
        """Return the id of a content in a context."""
        found = self._contexts.get(context)
        return None if found is None else found.ids.get(digest)

    def highest_id(self, context: str) -> int:
        """Return the highest id that was ever read in a context, 0 if none."""
        found = self._contexts.get(context)
        return 0 if found is None else found.highest_id

    def uses_of(self, context: str, schema_id: int) -> list[Version]:
        """Return the versions with an id, deleted ones included, sorted by subject and version."""
        found = self._contexts.get(context)
        keys = sorted(found.uses.get(schema_id, ())) if found is not None else []
        return [self._subjects[subject][number] for subject, number in keys]

    def ids_by_digest(self, digest: bytes) -> Iterator[tuple[str, int]]:
        """Yield the contexts and ids of a content."""
        for name, context in sorted(self._contexts.items()):
            schema_id = context.ids.get(digest)
            if schema_id is not None:
                yield name, schema_id

    def referrers(self, subject: str, version: int) -> list[Version]:
        """Return the versions that refer to a version and are not deleted."""
        keys = sorted(self._referrers.get((subject, version), ()))
        found = [self._subjects[name][number] for name, number in keys]
        return [each for each in found if not each.is_deleted]

    def own_config(self, subject: str | None) -> dict[str, Any] | None:
        """Return the config of exactly this subject, context (`:.name:`) or, with None, of the registry."""
        return self._configs.get(subject)

    def own_mode(self, subject: str | None) -> str | None:
        """Return the mode of exactly this subject, context or, with None, of the registry."""
        return self._modes.get(subject)

    def config(self, subject: str | None) -> dict[str, Any]:
        """Return the config in force for a subject: its own members override those of its context and the global ones."""
        merged: dict[str, Any] = {}
        for scope in scopes_of(subject):
            merged.update(self._configs.get(scope, {}))
        return merged

    def mode(self, subject: str | None) -> str | None:
        """Return the mode in force for a subject, None if none is set."""
        return next((self._modes[scope] for scope in reversed(scopes_of(subject)) if scope in self._modes), None)

    def counts(self) -> dict[str, int]:
        """Return the numbers of subjects, versions and schemas."""
        return {
            "subjects": len(self._subjects),
            "versions": sum(len(each) for each in self._subjects.values()),
            "schemas": sum(len(each.contents) for each in self._contexts.values()),
        }


def scope_of(subject: object) -> str | None:
    """Return the key of a config or a mode: None for the whole registry and for the default context."""
    if subject is None or subject == "":
        return None
    normalized = normalize_subject(str(subject))
    return normalized or None


def scopes_of(subject: str | None) -> list[str | None]:
    """Return the scopes that apply to a subject, the most general one first."""
    if subject is None:
        return [None]
    context = context_of(subject)
    scopes: list[str | None] = [None]
    if context != DEFAULT_CONTEXT:
        scopes.append(qualify(context, ""))
    if not is_context_only(subject):
        scopes.append(subject)
    return scopes
