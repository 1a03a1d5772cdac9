"""The audit log: one line of JSON for each thing that somebody wanted to do, with the verdict.

    {"time": "2026-11-22T14:03:02.117Z", "principal": "User:alice", "host": "10.0.0.7", "client_id": "etl-1",
     "api": "Produce", "operation": "WRITE", "resource_type": "TOPIC", "resource": "orders", "allowed": false}

Bounded: the file is put aside as `….1` when it is full, in place of the one before. What is only looked through for what may
be shown, such as a list of all topics, is not in it.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler

from ottla.broker.requests.call import Call
from ottla.errors import ConfigError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.apis import DECLARED

log = logging.getLogger(__name__)


class AuditFile(RotatingFileHandler):
    """A file that says once when it cannot be written: whoever is served need not suffer from that."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.failed:
            self.failed = True
            log.error("the audit log %s cannot be written; verdicts are lost until it can", self.baseFilename)


class AuditLog:
    """Writes verdicts to a file of its own."""

    def __init__(self, path: str, max_bytes: int, *, denied_only: bool) -> None:
        """ConfigError where the file cannot be opened."""
        try:
            self._file = AuditFile(path, maxBytes=max_bytes, backupCount=1, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"audit.log = {path!r}: {error.strerror or error}") from None
        self._file.setFormatter(logging.Formatter("%(message)s"))
        self._denied_only = denied_only

    def note(self, call: Call, operation: Operation, kind: ResourceType, name: str, *, allowed: bool) -> None:
        """Write a line, if it is to be written."""
        if allowed and self._denied_only:
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "principal": call.connection.principal,
            "host": call.connection.peer[0],
            "client_id": call.header.client_id,
            "api": DECLARED[call.header.api_key].name,
            "operation": operation.name,
            "resource_type": kind.name,
            "resource": name,
            "allowed": allowed,
        }
        self._file.handle(logging.makeLogRecord({"msg": json.dumps(line)}))

    def close(self) -> None:
        self._file.close()
