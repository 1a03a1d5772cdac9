"""Offset lookups and commits: start positions by time or from committed offsets, and commits of progress.

OffsetFetcher ─► ListOffsets                                                        to partition leaders
CommittedOffsets ─► OffsetFetch     AutoCommit ─► OffsetCommits ─► OffsetCommit     to the coordinator

This package receives the identity of the group member as a `ConsumerGroupMetadata`. It does not depend on rebalances.
"""
