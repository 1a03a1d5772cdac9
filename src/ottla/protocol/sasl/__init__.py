"""SASL mechanisms as pure state machines, for client and server.

next(b"") ──► first message ──► next(challenge) ──► … ──► next(last challenge) is None

A `Conversation` receives the server's messages and returns its own; random values are arguments, and no clock is read.
"""
