"""The flights of a year through three nodes, of which two are killed on the way.

python -m examples.cluster_flights ─► acknowledgements over time, what each kill cost, every flight counted, and a picture
"""
