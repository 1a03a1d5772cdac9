"""Consumer groups of one partition of `__consumer_offsets`: who is a member, who reads what, and how far they got.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲                │  ▲                   │                │
      └────────────────┘  └───────────────────┴────────────────┘

`shard` is the machine; each verb that changes a group (joining, syncing, leaving, …) is a file of its own.
"""
