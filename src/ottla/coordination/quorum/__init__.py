"""What those know of the cluster's metadata who do not decide it: its log, copied from the controllers (KIP-595)."""
