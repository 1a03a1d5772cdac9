"""The life of a consumer group, from the events of the broker and of its members.

python -m examples.rebalance ─► story ─► events ─► time line on the terminal, and a picture
"""
