"""The log of one partition: Kafka's UnifiedLog.

Log ──► appending (as the leader: checked, stamped), following (as a follower: as it came) ──► rolling: when a segment is full
  └───► truncation: what a follower gives up · high_watermark: what is committed · durability: what is on the disk · log_damage: what to tell of damage

What changes the end of a log stands here, a file for each way.
"""

from __future__ import annotations

from ottla.storage.log.appending import Appended
from ottla.storage.log.log import Log

__all__ = ["Appended", "Log"]
