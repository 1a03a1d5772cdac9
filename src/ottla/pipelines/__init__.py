"""Pipelines in a file: from any source through topics and transforms to any sink, on Spark.

    file ──► manager ──► sources ──► transforms ──► sinks
                         each a checked model that knows how Spark does what it says

A pipeline file is YAML. `file` reads it and says what is wrong with it and where; the rule everywhere is that a mistake
is one sentence with its place, before anything runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.pipelines.pipeline import Pipeline
    from ottla.pipelines.place import PipelineFileError

__all__ = ["Pipeline", "PipelineFileError"]

HOME = {"Pipeline": "ottla.pipelines.pipeline", "PipelineFileError": "ottla.pipelines.place"}


def __getattr__(name: str) -> Any:
    if name in HOME:
        return getattr(import_module(HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
