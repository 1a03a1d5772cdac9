"""A schema registry with the REST interface of Confluent's, over the compacted topic `_schemas`.

    server ─► routes ─► registry ─► schema_topic, election     (the shells)
                           └─► decisions ─► state ─► records, subjects
                                   └─► compatibility ─► kinds

`state` is a pure state machine that the records of the topic change. `decisions` maps a request to records and a
response. `registry` writes the records and waits until they are read back. `kinds` has one module for each format.
"""
