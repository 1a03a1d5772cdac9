"""OpenLineage events of pipelines: each run starts, completes or fails, with its datasets and their columns.

The extra `openlineage` has the client. Its own settings (`OPENLINEAGE_URL`, `OPENLINEAGE_CONFIG`, `openlineage.yml`) choose
between HTTP, a file, Kafka and the console.
"""
