"""The pure parts of a share consumer: its session with each broker, its acknowledgements and its membership.

No I/O and no clock: events and times are arguments, and requests are results.
"""
