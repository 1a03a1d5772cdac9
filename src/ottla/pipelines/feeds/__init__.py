"""Sources that are polled for rows: databases, change logs, web addresses.

    source's model ──► Feed.poll(position) ──► Spool (files) ──► tasks of Spark
                            └──► the next position ──► Spark's offset log

Exactly-once depends on this order: fetched rows are on disk (fsync) before Spark receives the position after them.
Spark's `MicroBatchExecution` writes that position, which names the files, to its offset log before it runs the batch.
So a batch that runs again after a failure reads the same files and has the same rows, even if the source has changed
meanwhile, and an exactly-once sink makes the whole pipeline exactly-once.
"""
