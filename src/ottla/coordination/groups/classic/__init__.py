"""Classic groups: the coordinator says who is in, and one member, the leader, who reads what.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲                │  ▲                   │                │
      └────────────────┘  └───────────────────┴────────────────┘

Each verb that changes a group (joining, syncing, leaving, …) is a file of its own, and works on a `Step`.
"""
