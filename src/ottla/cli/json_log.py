"""Log events as JSON lines for log collectors. A traceback is a field of its event."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from ottla.escaping import escape_json
from ottla.log_format import EscapingFormatter


class JsonFormatter(logging.Formatter):
    """Format a log record as an object with `at`, `level`, `logger`, `message`, and `exception` if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # imported only if the log is JSON

        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {"at": at, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return escape_json(json.dumps(fields, ensure_ascii=False))


def configure_logging(level: int, form: str) -> None:
    """Configure logging to standard error, as text or as JSON."""
    handler = logging.StreamHandler()
    text = EscapingFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=level, handlers=[handler])


def format_message(logger: str, message: str) -> str:
    """Return a message of any log level as a JSON line."""
    return JsonFormatter().format(logging.LogRecord(logger, logging.INFO, "", 0, message, (), None))
