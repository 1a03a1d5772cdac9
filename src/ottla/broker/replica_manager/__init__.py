"""The partitions of a broker: logs, leadership, followers, and the fetches that wait for records.

assigned_replicas ──► replica_roles ──► leadership or followed_partition ──► partition ──► its log
partition_reader, fetch_purgatory, fetch_session: what a fetch reads, waits for and remembers (KIP-227)
log_cleaner, log_flusher, partition_sweep, log_dir_moves, log_dir_failures: background work on logs and directories
"""
