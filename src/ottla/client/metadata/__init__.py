"""The cluster as a client knows it: brokers, topics, leaders, coordinators."""
