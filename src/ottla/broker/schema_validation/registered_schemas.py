"""The subjects of schemas, as the registry reports them, cached.

Requests are made in threads with a time limit. Only schemas that are registered are cached: one that is unknown may be
registered a moment later. A producer that sends an unknown reference therefore costs one request to the registry each
time, of which one per reference is in flight.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
from collections.abc import Callable, Set
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen
from uuid import UUID

from ottla.broker.event_loop.disk import Disk
from ottla.broker.schema_validation.references import Reference
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock

log = logging.getLogger(__name__)

REQUEST_SECONDS = 5.0
"""The limit of one request. The producer's request.timeout.ms is six times as long by default."""
CACHED_SECONDS = 300.0
"""The time for which a deleted schema may still be accepted."""
MOST_CACHED = 10_000
NOT_FOUND = 404
OnFound = Callable[[Set[str] | Exception], None]
"""Receives the subjects of a schema, or the reason why they are unknown."""


class Lookup:
    """The requests that wait for the subjects of one schema."""

    def __init__(self) -> None:
        self.waiting: list[OnFound] = []
        self.next: list[OnFound] = []
        """Requests that arrived while the registry was answering: its answer may be older than a registration before them."""


class RegisteredSchemas:
    """Looks up the subjects of schemas. All methods are called in the event loop's thread."""

    def __init__(self, config: BrokerConfig, clock: Clock, threads: Disk) -> None:
        self._urls = [url.rstrip("/") for url in config.schema_registry_url]
        user_info = config.schema_registry_basic_auth_user_info
        self._authorization = (
            None if user_info is None else f"Basic {base64.b64encode(user_info.value.encode()).decode('ascii')}"
        )
        is_secure = any(url.startswith("https") for url in self._urls)
        certificates = config.schema_registry_ssl_truststore_location or None
        self._tls = ssl.create_default_context(cafile=certificates) if is_secure else None
        self._clock = clock
        self._threads = threads
        self._known: dict[Reference, tuple[float, Set[str]]] = {}
        self._lookups: dict[Reference, Lookup] = {}

    @property
    def has_registry(self) -> bool:
        """True if the broker has the address of a registry."""
        return bool(self._urls)

    def find(self, reference: Reference) -> Set[str] | None:
        """Return the subjects of a schema if they are cached."""
        known = self._known.get(reference)
        if known is None or self._clock.monotonic() >= known[0]:
            return None
        return known[1]

    def look_up(self, reference: Reference, on_found: OnFound) -> None:
        """Ask the registry, and call `on_found` with the result."""
        lookup = self._lookups.get(reference)
        if lookup is not None:
            lookup.next.append(on_found)
            return
        lookup = self._lookups[reference] = Lookup()
        lookup.waiting.append(on_found)
        self._start(reference, lookup)

    def _start(self, reference: Reference, lookup: Lookup) -> None:
        result: list[Set[str]] = []
        self._threads.submit(
            lambda: result.append(self._request_subjects(reference)),
            lambda error: self._finish(reference, lookup, result, error),
        )

    def _finish(
        self, reference: Reference, lookup: Lookup, result: list[Set[str]], error: BaseException | None
    ) -> None:
        found: Set[str] | Exception
        if error is None:
            found = result[0]
            self._keep(reference, found)
        else:
            found = error if isinstance(error, Exception) else RuntimeError(str(error))
            log.warning("schema registry request failed reference=%s error=%s", reference, error)
        waiting, lookup.waiting, lookup.next = lookup.waiting, lookup.next, []
        if lookup.waiting:
            self._start(reference, lookup)
        else:
            del self._lookups[reference]
        for on_found in waiting:
            on_found(found)

    def _keep(self, reference: Reference, subjects: Set[str]) -> None:
        self._known.pop(reference, None)
        if subjects:
            self._known[reference] = self._clock.monotonic() + CACHED_SECONDS, subjects
            if len(self._known) > MOST_CACHED:
                del self._known[next(iter(self._known))]

    # In a thread

    def _request_subjects(self, reference: Reference) -> Set[str]:
        """Return the subjects of a schema; none if it is unknown. Raise OSError or ValueError if no registry answers."""
        ids = [reference] if isinstance(reference, int) else self._request_ids(reference)
        found: set[str] = set()
        for each in ids:
            found |= {entry["subject"] for entry in self._get(f"/schemas/ids/{each}/versions")}
        return frozenset(found)

    def _request_ids(self, guid: UUID) -> list[int]:
        return [entry["id"] for entry in self._get(f"/schemas/guids/{guid}/ids")]

    def _get(self, path: str) -> Any:
        """Return the JSON of a response, an empty list for 404. The servers are asked in turn until one answers."""
        failures: list[str] = []
        for url in self._urls:
            try:
                return self._get_from(url + path)
            except HTTPError as error:
                error.close()  # it is the response too
                if error.code == NOT_FOUND:
                    return []
                failures.append(f"{url}: HTTP {error.code}")
            except (OSError, ValueError) as error:  # URLError is an OSError
                reason = error.reason if isinstance(error, URLError) else error
                failures.append(f"{url}: {reason}")
        raise OSError("; ".join(failures))

    def _get_from(self, url: str) -> Any:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        with urlopen(Request(url, headers=headers), timeout=REQUEST_SECONDS, context=self._tls) as response:
            return json.load(response)
