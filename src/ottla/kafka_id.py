"""Kafka's text form of ids: 16 bytes as 22 characters of URL-safe base64."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID, uuid4

ID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")
LAST_RESERVED = UUID(int=99)
"""Directory ids up to this one are Kafka's markers: unassigned, migrating, lost."""


def text_of(id_: UUID) -> str:
    """Return the text of an id as in `meta.properties`, `partition.metadata` and the output of tools."""
    return urlsafe_b64encode(id_.bytes).decode().rstrip("=")


def id_of(text: str) -> UUID:
    """Return the id of a text; raise ValueError if it is malformed."""
    if not ID_TEXT.fullmatch(text):
        raise ValueError(f"invalid id {text!r}: expected 22 characters of base64")
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def new_id() -> str:
    """Return the text of a new random id."""
    return text_of(uuid4())
