"""Partitions on disk, in Kafka's file formats. Calls block on the disk; nothing here knows sockets or clocks.

inspection, repair ──► directory ──► cleaning ──► log ──► recovery ──► segments ──► indexes ──► producers ──► files
  from outside         all logs                   one     a start      files of     batches
                                                          after it     batches      validation
"""

from __future__ import annotations

from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Appended, Log
from ottla.storage.log_config import LogConfig
from ottla.storage.recovery.log_loader import Recovery

__all__ = ["Appended", "DataDirectory", "Log", "LogConfig", "Recovery"]
