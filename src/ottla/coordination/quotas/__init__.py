"""How much clients may use: limits of users, client ids and addresses, and how what they used is counted.

    limits (which one is for whom) ──► Rate or TokenBucket of those who share it ──► how long to be quiet

Pure: time is an argument. `cluster/` keeps the limits, the broker counts.
"""
