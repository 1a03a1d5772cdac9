"""A consumer group's life, told by the broker and by its members at once.

python -m examples.rebalance ─► story ─► what happened ─► time line on the terminal, and a picture
"""
