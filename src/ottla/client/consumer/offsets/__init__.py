"""Offsets: where to begin, by time or by what the group has committed, and how far it has got.

OffsetFetcher ─► ListOffsets                                the leaders' word
CommittedOffsets ─► OffsetFetch     AutoCommit ─► OffsetCommits ─► OffsetCommit    the coordinator's

Knows a member only by the `ConsumerGroupMetadata` as which it commits; nothing of how members come and go.
"""
