"""The log as lines of JSON, for who gathers logs: a line for each event, tracebacks in it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from ottla.escaping import escape_json
from ottla.log_format import EscapingFormatter


class JsonFormatter(logging.Formatter):
    """An object with `at`, `level`, `logger`, `message`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # for whose log is JSON

        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return escape_json(json.dumps(fields, ensure_ascii=False))


def begin_log(level: int, form: str) -> None:
    """Write what happens to standard error from now on, as text or as JSON."""
    handler = logging.StreamHandler()
    text = EscapingFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=level, handlers=[handler])


def say(logger: str, message: str) -> str:
    """A sentence that is told whatever the level is, as a line of such a log."""
    return JsonFormatter().format(logging.LogRecord(logger, logging.INFO, "", 0, message, (), None))
