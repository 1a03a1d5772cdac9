"""Partitions on disk, in Kafka's file formats. Calls block on the disk; nothing here knows sockets or clocks.

DataDirectory ──► Log ──► Segment ──► OffsetIndex, TimeIndex
  .lock            │         └ 00000000000000000000.log
  checkpoints      └ recovery, retention, leader epochs
"""

from __future__ import annotations

from ottla.storage.appending import Appended
from ottla.storage.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.recovery import Recovery

__all__ = ["Appended", "DataDirectory", "Log", "LogConfig", "Recovery"]
