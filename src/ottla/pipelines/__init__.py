"""Pipelines in a file: from any source through topics and transforms to any sink, on Spark.

    file ──► sources ──► transforms ──► sinks
             each a checked model that knows how Spark does what it says

A pipeline file is YAML. `file` reads it and says what is wrong with it and where; the rule everywhere is that a mistake
is one sentence with its place, before anything runs.
"""
