"""A broker for taskiq: tasks are records of a topic. Needs the extra `taskiq`."""

from __future__ import annotations

from ottla.taskiq.task_broker import TaskBroker as TaskBroker

__all__ = ["TaskBroker"]
