"""Pipelines in a file: from any source through topics and transforms to any sink, on Spark.

    file ──► manager ──► sources ──► transforms ──► sinks
                         each a checked model that knows how Spark does what it says

A pipeline file is YAML. `file` reads it and says what is wrong with it and where; the rule everywhere is that a mistake
is one sentence with its place, before anything runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

if TYPE_CHECKING:
    from ottla.pipelines.pipeline import Pipeline
    from ottla.pipelines.place import PipelineFileError

__all__ = ["Pipeline", "PipelineFileError"]

HOME = {"Pipeline": "ottla.pipelines.pipeline", "PipelineFileError": "ottla.pipelines.place"}


__getattr__ = loader_of(__name__, HOME)
