"""Interoperability tests: other clients at our broker, our clients at Apache Kafka, and Kafka's tools on our files.

Run by `make interop`, since they need Java, Maven and half a minute.
"""
