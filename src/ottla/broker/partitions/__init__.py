"""The partitions of this broker, each with its log, and the chores that are done to all of them.

partitions ──► partition ──► its log
partition_reader: what a fetch is given · flusher, cleaning, sweep: what is done from time to time
"""
