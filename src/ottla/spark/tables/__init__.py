"""Delta and Iceberg tables as sinks and sources of Spark, without jars: `ottla_delta`, `ottla_iceberg`.

    rows ──► file_writer ──► Parquet files        in each task
                  │ names
                sink ──► guard ──► delta_store or iceberg_store ──► one commit, in the driver
    rows ◄── reader ◄──────────── files of a version

A batch of a query is in the table once or not at all, because the commit that adds its files also stores the batch's
number in the table. Tables are folders with the same path on all machines.
"""
