"""Logins by SASL as conversations: pure machines for the client's side.

    first() ──► challenge ──► answer(challenge) ──► … ──► finish(challenge)

A `Conversation` is told what the server sent and tells what to send; chance is an argument, and no clock is read.
"""
