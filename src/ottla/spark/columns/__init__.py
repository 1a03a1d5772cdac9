"""What a query sees of a record: Spark's schema, and keys and values decoded into it."""
