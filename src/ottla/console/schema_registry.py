"""Queries about a schema registry that return views. Several threads may use them."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ottla.console.registered_values import RegisteredValues
from ottla.console.views import chosen_names
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.errors import SchemaRegistryError
from ottla.schemas.values import RegisteredSchema, Schema

if TYPE_CHECKING:
    from ottla.console.views import View

LIMITS: Mapping[str, Any] = {"timeout": 5, "max.retries": 0}
"""Settings of the client, so that a page appears soon also if the registry does not answer."""
PAGE = 100
"""The number of subjects on a page."""
LIST_SECONDS = 10.0
PARALLEL_REQUESTS = 8
MOST_DIFF_LINES = 10_000
NOT_FOUND = 404


class ConsoleRegistry:
    """The pages of a schema registry. Nothing is changed in it."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def values(self) -> RegisteredValues:
        """Return the decoder for the records of one search."""
        return RegisteredValues(self._client)

    def subjects(self, text: str, start: int) -> View:
        """Return a page of the subjects that contain `text` in their names."""
        count, names = chosen_names(self._client.get_subjects(), text, start, PAGE)
        deadline = time.monotonic() + LIST_SECONDS
        with ThreadPoolExecutor(PARALLEL_REQUESTS, "ottla-console-schemas") as pool:
            rows = [pool.submit(self._subject_row, name) for name in names]
            try:
                found = [row.result(max(0.0, deadline - time.monotonic())) for row in rows]
            except TimeoutError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise SchemaRegistryError(
                    -1,
                    -1,
                    f"the registry took more than {LIST_SECONDS:.0f} s for {len(names)} subjects; search for one",
                ) from None
            except SchemaRegistryError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return {"count": count, "from": start, "subjects": [row for row in found if row is not None]}

    def _subject_row(self, name: str) -> View | None:
        """Return the row of a subject; None if it was deleted meanwhile."""
        try:
            newest, level = self._client.get_version(name), self._client.get_compatibility(name)
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            raise
        return {
            "name": name,
            "type": newest.schema.schema_type,
            "version": newest.version,
            "id": newest.schema_id,
            "compatibility": level,
        }

    def subject(self, name: str, version: int | None) -> View:
        """Return a version of a subject, the newest by default, and the difference to the version before it."""
        self._client.clear_caches()  # a subject may have been deleted and created again
        versions = self._client.get_versions(name)
        chosen = self._client.get_version(name, version or versions[-1])
        before = max((each for each in versions if each < (chosen.version or 0)), default=None)
        return {
            "name": name,
            "versions": versions,
            "version": chosen.version,
            "id": chosen.schema_id,
            "type": chosen.schema.schema_type,
            "schema": chosen.schema.readable_text(),
            "references": [[each.name, each.subject, each.version] for each in chosen.schema.references],
            "compatibility": self._client.get_compatibility(name),
            "before": before,
            "diff": [] if before is None else diff_lines(self._client.get_version(name, before), chosen),
        }

    def check(self, name: str, text: str) -> View:
        """Return why a schema is not compatible with a subject. It has the type and the references of the newest version."""
        newest = self._client.get_version(name).schema
        proposed = Schema(text, newest.schema_type, newest.references)
        return {
            "compatibility": self._client.get_compatibility(name),
            "reasons": self._client.explain_compatibility(name, proposed),
        }


def diff_lines(before: RegisteredSchema, after: RegisteredSchema) -> list[str]:
    """Return the lines of a unified difference between two versions."""
    older, newer = (each.schema.readable_text().splitlines() for each in (before, after))
    if len(older) + len(newer) > MOST_DIFF_LINES:
        return [f"The two versions have more than {MOST_DIFF_LINES} lines and are not compared."]
    names = f"version {before.version}", f"version {after.version}"
    return list(difflib.unified_diff(older, newer, names[0], names[1], lineterm=""))
