"""Getting bytes from brokers, ahead of the user, and rows out of them.

Fetcher.send_fetches ─► FetchSessionHandler: what to tell each broker ─► Fetch
        │   └ ReadReplicas: which broker; PositionValidator: whether its log still is the one that was read
        └ collect_fetch ◄─ CompletedFetch ◄─ answers, a partition's share each
"""
