"""The schema registry of the plugin: a registry in a thread, on the plugin's broker."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from ottla.errors import IllegalStateError
from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.errors import SchemaRegistryError

if TYPE_CHECKING:
    from types import TracebackType

START_SECONDS = 30.0
REFERENCED = 42206
"""The registry's code for a schema that others reference."""
DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"


class TestedRegistry:
    """A schema registry for any client: `registry.url`. `registry.client` is one of `ottla.schemas`."""

    __test__ = False

    def __init__(self, client_settings: dict[str, Any]) -> None:
        self._server = RegistryServer(RegistrySettings(client_settings, port=0))
        self._ready = threading.Event()
        self._has_started = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ottla-tested-registry", daemon=True)
        self.url = self._server.url
        """The address for clients."""
        self.client = SchemaRegistryClient({"url": self.url})

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(START_SECONDS)
        if not self._has_started:
            self.__exit__(None, None, None)
            reason = self._failure or f"it was not ready within {START_SECONDS:g} s"
            raise IllegalStateError(f"the schema registry did not start: {reason}") from self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._server.stop()
        self._thread.join(START_SECONDS)

    def _run(self) -> None:
        try:
            self._server.run(self._report_ready)
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    def _report_ready(self, _: RegistryServer) -> None:
        self._has_started = True
        self._ready.set()

    def clear(self) -> None:
        """Delete all subjects for ever, and restore the global compatibility level and mode."""
        client = self.client
        client.clear_caches()
        if client.get_global_mode() != DEFAULT_MODE:
            client.update_global_mode(DEFAULT_MODE, force=True)
        if client.get_compatibility() != DEFAULT_LEVEL:
            client.set_compatibility(level=DEFAULT_LEVEL)
        remaining = client.get_subjects(deleted=True)
        while remaining:
            kept = [subject for subject in remaining if not self._delete(subject)]
            if len(kept) == len(remaining):
                raise IllegalStateError(f"the registry refuses to delete {', '.join(kept)}")
            remaining = kept

    def _delete(self, subject: str) -> bool:
        """Delete a subject for ever; return False if others still reference it."""
        try:
            self.client.delete_subject(subject, permanent=True)
        except SchemaRegistryError as error:
            if error.error_code != REFERENCED:
                raise
            return False
        return True
