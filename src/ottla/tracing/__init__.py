"""A client, or a broker, that lets others of its own user look inside while it works, by a socket of its own.

    OTTLA_TRACE=FOLDER ── a client is made ── FOLDER/consumer-4711-1.sock ── lines of JSON, to whoever connects

A broker does the same where `trace.folder` says so. `plain` makes values into what JSON has, `trace_socket` listens. Nothing in here is loaded where neither is set.
"""
