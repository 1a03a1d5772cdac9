"""Decodes the bytes of keys and values (`valueFormat` and `keyFormat`) in Spark's tasks, from Arrow to Arrow.

    bytes of a column ──► Format.decode ──► Decoded: a column of the format's type, and the errors by row

A format depends on columns only, not on Spark, Kafka or options. A row that cannot be decoded has a value and an error,
and never raises an exception; `row_decoder.py` handles it by the user's `mode`. A schema registry would be one more
`Format`, with the type of the latest schema, and rows that name the schema with which they were written.
"""
