"""Consume, transform, produce: a processing loop with low latency, without Spark.

poll ──► function of each record ──► send ──► offsets and records commit together
                 └── raised ──► dead letter, in the same transaction
"""

from ottla.client.process.dead_letters import Stage, dead_letter
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.processor import Processor, process

__all__ = ["Outgoing", "Processor", "Stage", "dead_letter", "process"]
