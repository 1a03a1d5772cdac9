"""What the broker knows of the cluster, all of it in the log of the metadata: topics, features, producer ids."""
