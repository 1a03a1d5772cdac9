"""A topic of an Apache Kafka cluster moves to a broker of ours and back, while it is written to."""
