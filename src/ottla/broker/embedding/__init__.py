"""Brokers inside other programs: `ottla.Broker`, broker processes, and local clusters (`ottla.Cluster`)."""
