"""Validation of produced records by a schema registry: topics with `key.schema.validation` or `value.schema.validation`.

    Produce ──► all references of the batches known? ── yes ──► accept or reject, append
                      │ no
                      └──► ask the registry in a thread, one request per reference ──► the call continues

A record refers to its schema by the four bytes of an id after a zero byte, or by a header with the schema's GUID. It is
accepted if the schema is registered under the subject of the topic (`TOPIC-key` or `TOPIC-value`). Its other bytes are
not read: a broker knows schemas, not formats.
"""
