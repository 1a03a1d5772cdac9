"""Parse points in time: `-10m`, `2026-01-31T12:00`, milliseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ottla.cli.options import usage_error

AGO = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d)")
UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment_of(option: str, text: str, now_ms: int) -> int:
    """Return the time in ms since 1970; a time without a zone is UTC."""
    if ago := AGO.fullmatch(text):
        return max(0, now_ms - int(float(ago[1]) * UNIT_MS[ago[2]]))
    if text.isdecimal() and text.isascii():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise usage_error(
            f"invalid value {text!r} for {option}: expected a time such as 2026-01-31T12:00, -10m (s, m, h, d), or ms since 1970"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
