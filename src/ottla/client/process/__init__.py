"""Consume, transform, produce: a processing loop with low latency, without Spark.

poll ──► function of each record ──► send ──► offsets and records commit together
                 └── raised ──► dead letter, in the same transaction

The names load when they are first used: programs that only need `stop_signals` do without producer and consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "Outgoing": "ottla.client.process.outgoing",
    "Processor": "ottla.client.process.processor",
    "Stage": "ottla.client.process.dead_letters",
    "dead_letter": "ottla.client.process.dead_letters",
    "process": "ottla.client.process.processor",
}
"""The module of each public name."""
__all__ = list(HOME)

__getattr__ = loader_of(__name__, HOME)

if TYPE_CHECKING:
    from ottla.client.process.dead_letters import Stage as Stage
    from ottla.client.process.dead_letters import dead_letter as dead_letter
    from ottla.client.process.outgoing import Outgoing as Outgoing
    from ottla.client.process.processor import Processor as Processor
    from ottla.client.process.processor import process as process
