"""Move a topic of an Apache Kafka cluster to a broker of ours and back during writes."""
