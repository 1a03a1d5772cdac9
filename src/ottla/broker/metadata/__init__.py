"""The metadata of the cluster as a broker holds it: the committed image, topics, features, brokers and producer ids."""
