"""Copies of partitions: what of a cluster's metadata lies on this broker, followed from elsewhere or led here.

hosting: what the metadata say, done · followed_partition, leader_fetcher: copying · isr_changes: who is in sync, told to the controllers
"""
