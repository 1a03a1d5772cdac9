"""Delta and Iceberg tables as sinks and sources of Spark, without jars: `ottla_delta`, `ottla_iceberg`.

    rows ──► file_writer ──► Parquet files        in each task
                                  │ names
             sink ──► guard ──► delta_store | iceberg_store ──► one commit, in the driver
    rows ◄── reader ◄──────────── files of a version

The rule: a batch of a query is in the table once or not at all, because the table itself remembers it in the
commit that adds its files. Tables are folders that every machine reaches by the same path.
"""
