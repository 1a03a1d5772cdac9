"""What happens to rows on their way: SQL, a Python function, and Kafka Connect's transforms under their names."""

from __future__ import annotations

from ottla.pipelines.transforms.connect import CONNECT
from ottla.pipelines.transforms.function import FunctionTransform
from ottla.pipelines.transforms.predicates import PREDICATES, Predicate
from ottla.pipelines.transforms.sql import SqlTransform
from ottla.pipelines.transforms.transform import Transform

__all__ = ["CONNECT", "PREDICATES", "FunctionTransform", "Predicate", "SqlTransform", "Transform"]
