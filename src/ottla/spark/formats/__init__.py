"""What the bytes of keys and values mean: `valueFormat` and `keyFormat`, decoded in Spark's tasks, Arrow in, Arrow out.

    bytes of a column ──► Format.decode ──► Decoded: a column of the format's type, and what could not be read

A format knows no Spark, no Kafka and no options, only columns. The rule: a row that cannot be decoded is a value with an
error beside it, never an exception; what becomes of it is for `decoding.py` to decide, by the user's `mode`.
A schema registry is one more `Format`, whose type is that of the latest schema and whose rows say by which they were written.
"""
