"""Kafka Streams' best known examples as pipeline files: `ottla pipeline run examples/streams/word_count.yaml`."""
