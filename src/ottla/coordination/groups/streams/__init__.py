"""Groups of Kafka Streams (KIP-1071): their topologies, members and tasks."""
