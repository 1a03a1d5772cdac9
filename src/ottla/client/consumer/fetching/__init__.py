"""Fetch record batches ahead of the user, and return their records.

Fetcher.send_fetches ─► FetchSessionHandler: the changes to send to each broker ─► Fetch
        │   └ ReadReplicas: the broker to fetch from; PositionValidator: detects truncated logs
        └ collect_fetch ◄─ CompletedFetch ◄─ responses, one per partition
"""
