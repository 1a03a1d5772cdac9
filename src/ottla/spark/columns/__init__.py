"""The columns of a record: Spark's schema, and the decoding of keys and values."""
