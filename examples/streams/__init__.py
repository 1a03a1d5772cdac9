"""The best known examples of Kafka Streams as pipeline files: `ottla pipeline run examples/streams/word_count.yaml`."""
