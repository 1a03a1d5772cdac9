"""The log of a machine's state, where it is not as other logs: none of it may be missing, and snapshots stand for its beginning.

check: may it be taken up? · quorum_state: for whom this node has voted · values: what is in it, from outside · snapshot ──► voter: what Kafka's quorum looks for
"""
