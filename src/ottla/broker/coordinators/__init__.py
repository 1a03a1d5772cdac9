"""The coordinators of groups and of transactions: their shards, and the execution of the shards' decisions."""
