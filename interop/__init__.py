"""Ottla and the others: their clients at our broker, ours at Apache Kafka, Kafka's tools on our files.

Run by `make interop`, for it needs Java, Maven and half a minute.
"""
