"""What is not Connect's: how pipelines are, in full, and the tables that are served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ottla._version import __version__
from ottla.pipelines.manager.rest.answers import BYTES, JSON, Answer, in_json

if TYPE_CHECKING:
    from ottla.pipelines.manager.rest.api import Asked


def root(asked: Asked) -> Answer:
    """Connect says its version and its cluster here; `manager` is this process's own."""
    known = {"version": __version__, "commit": "", "kafka_cluster_id": "", "manager": asked.identity}
    return in_json(known)


def pipelines(asked: Asked) -> Answer:
    return in_json([facts.to_json() for facts in asked.manager.facts()])


def tables(asked: Asked) -> Answer:
    return in_json([table.facts() for table in asked.tables.all()])


def value(asked: Asked) -> Answer:
    """The value that a table has for a key, as it is in the topic."""
    found = asked.tables.value(asked.names["name"], asked.names["key"].encode())
    return Answer(200, found, JSON if is_json(found) else BYTES)


def is_json(data: bytes) -> bool:
    """Whether it is JSON; only what looks so is tried."""
    if data[:1] not in b'{["-0123456789tfn':
        return False
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
