"""The quorum that keeps the cluster's metadata (KRaft: KIP-595, KIP-630, KIP-853, KIP-996), and those who copy it without a vote."""
