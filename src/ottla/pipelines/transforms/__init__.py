"""The transforms of rows: SQL, Python functions, and Kafka Connect's transforms and Kafka Streams' operations by name."""

from __future__ import annotations

from ottla.pipelines.transforms.connect import CONNECT
from ottla.pipelines.transforms.function import FunctionTransform
from ottla.pipelines.transforms.predicates import PREDICATES, Predicate
from ottla.pipelines.transforms.sql import SqlTransform
from ottla.pipelines.transforms.streams import STREAM_STEPS
from ottla.pipelines.transforms.transform import Transform

__all__ = ["CONNECT", "PREDICATES", "STREAM_STEPS", "FunctionTransform", "Predicate", "SqlTransform", "Transform"]
