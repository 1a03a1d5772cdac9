"""A broker's conversations with the controllers of its cluster, each in a thread of its own.

lifecycle_driver: that it is there · metadata_fetcher: what they decided · controller_channel: what clients want of them
"""
