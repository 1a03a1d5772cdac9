"""Publish the internal events of a running client or broker to other processes of the same user, by a Unix socket.

OTTLA_TRACE=FOLDER ── a client is created ── FOLDER/consumer-4711-1.sock ── JSON lines to each connection

A broker does the same with `trace.folder`. `plain` converts values for JSON, `trace_socket` listens. Without these
settings this package is not imported.
"""
