"""Ids as Kafka writes them wherever they are text: 16 bytes as 22 characters of base64, `-` and `_` among them."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID, uuid4

ID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")
LAST_RESERVED = UUID(int=99)
"""Ids of directories up to here are Kafka's marks: assigned to nobody knows which directory, to none, to a lost one."""


def text_of(id_: UUID) -> str:
    """An id as it stands in `meta.properties`, in `partition.metadata` and in what tools print."""
    return urlsafe_b64encode(id_.bytes).decode().rstrip("=")


def id_of(text: str) -> UUID:
    """The inverse of `text_of`; ValueError for anything else."""
    if not ID_TEXT.fullmatch(text):
        raise ValueError(f"{text!r} is no id of 22 characters in base64")
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def new_id() -> str:
    """The text of an id that nobody else has."""
    return text_of(uuid4())
