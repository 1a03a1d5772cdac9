"""How a connection of our own making is secured: its settings, whom it trusts, what it shows, how it logs in.

For clients, and for brokers where they are clients of controllers and of each other. Nothing here waits or knows a clock.
"""
