"""The audit log: one line of JSON for each authorization decision.

    {"time": "2026-11-22T14:03:02.117Z", "principal": "User:alice", "host": "10.0.0.7", "client_id": "etl-1",
     "api": "Produce", "operation": "WRITE", "resource_type": "TOPIC", "resource": "orders", "allowed": false}

Bounded: a full file is renamed to `….1`, and replaces the one before. Checks that only filter a list, such as the list
of all topics, are not logged.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler

from ottla.errors import ConfigError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.apis import DECLARED

log = logging.getLogger(__name__)


class AuditFile(RotatingFileHandler):
    """A log file that reports once when it cannot be written, and does not fail the request."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.failed:
            self.failed = True
            log.error("cannot write the audit log %s; decisions are lost until it can be written", self.baseFilename)


class AuditLog:
    """Writes authorization decisions to a file."""

    def __init__(self, path: str, max_bytes: int, *, denied_only: bool) -> None:
        """Raise ConfigError if the file cannot be opened."""
        try:
            self._file = AuditFile(path, maxBytes=max_bytes, backupCount=1, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"audit.log = {path!r}: {error.strerror or error}") from None
        self._file.setFormatter(logging.Formatter("%(message)s"))
        self._denied_only = denied_only

    def record_decision(
        self,
        principal: str,
        host: str,
        client_id: str | None,
        api_key: int,
        operation: Operation,
        kind: ResourceType,
        name: str,
        *,
        allowed: bool,
    ) -> None:
        """Write a line, unless the decision is an authorization and only denials are written."""
        if allowed and self._denied_only:
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "principal": principal,
            "host": host,
            "client_id": client_id,
            "api": DECLARED[api_key].name,
            "operation": operation.name,
            "resource_type": kind.name,
            "resource": name,
            "allowed": allowed,
        }
        self._file.handle(logging.makeLogRecord({"msg": json.dumps(line)}))

    def close(self) -> None:
        self._file.close()
