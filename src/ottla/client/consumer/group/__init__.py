"""A consumer as a member of its group.

user's thread                                               heartbeat thread
ConsumerCoordinator.poll                                    HeartbeatThread
   ├─► ClassicRebalance or Reconciliation ─► a membership ◄─┘  JoinGroup, SyncGroup, Heartbeat, LeaveGroup
   │        └─► PartitionExchange ─► the listener              or ConsumerGroupHeartbeat
   └─► TopicWatch: have the subscribed topics changed?
"""
