"""Kafka's wire messages: bytes in, typed values out, and back.

    schema ── declares ──► messages/<api>      one class for all versions of a message
                               │ plan_of(class, version)
                               ▼
    conversation ── walks ──► plan ──► codec   Reader, Writer
        encode_request, decode_header, decode_request, encode_response, decode_response

`apis` is the table of what we speak. Nothing here knows a socket or a clock; importing this package
imports no message.
"""
