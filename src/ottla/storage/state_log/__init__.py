"""The log of a machine's state. It differs from other logs: none of it may be missing, and snapshots replace its beginning.

check: can it be loaded? · quorum_state: the vote of this node · values: its content, for tools · snapshot ──► voter: Kafka's records of the quorum
"""
