"""Pipelines in a YAML file: from any source through topics and transforms to any sink, run by Spark.

    file ──► manager ──► sources ──► transforms ──► sinks
            each a checked model that builds its part of the Spark query

`file` reads the pipeline file and reports every mistake with its place, in one sentence, before anything runs.
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
