"""What is read from elsewhere by asking again and again: databases, changes, addresses.

source's model ──► Feed.poll(position) ──► Spool (files) ──► tasks of Spark
                        └──► the next position ──► Spark's offset log

The rule: what was fetched is on the disk before its position counts. So a batch that is done again has the same rows, whatever
has happened to them at the source meanwhile, and a sink that is exactly once makes the whole way exactly once.
"""
