"""The leader's side of share groups (KIP-932): sessions of members, and the records that they have in flight.

ShareFetch ──► ShareSessions ──► SharePartitionManager ──► LedSharePartition ──► coordination.share.SharePartition
                                                            │        │
                                    share_log_reader ◄──────┘        └──► SharePersister, DeadLetterQueue
"""
