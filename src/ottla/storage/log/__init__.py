"""The log of one partition (Kafka's UnifiedLog): `log`, with its compiled append path, flushing and damage in modules of their own."""

from __future__ import annotations

from ottla.storage.log.append_path import Appended
from ottla.storage.log.log import Log

__all__ = ["Appended", "Log"]
