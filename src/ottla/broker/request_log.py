"""One line for each request: who asked what, how long it took.

Written to the logger `ottla.request` at level DEBUG:

    logging.getLogger("ottla.request").setLevel(logging.DEBUG)
"""

from __future__ import annotations

import logging

from ottla.broker.call import Call

log = logging.getLogger("ottla.request")


def wanted() -> bool:
    """Whether anybody reads these lines."""
    return log.isEnabledFor(logging.DEBUG)


def write(call: Call, name: str, now: float, sent_bytes: int) -> None:
    """Note an answered request; no bytes are sent where no answer was wanted."""
    log.debug(
        "%s v%d client.id=%s from %s: %.3f ms, %d bytes",
        name,
        call.header.api_version,
        call.header.client_id,
        call.connection,
        (now - call.received) * 1000,
        sent_bytes,
    )
