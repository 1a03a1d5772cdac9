"""`ottla acls`, `users`, `quotas` and `certificates`: access rules, passwords, limits and TLS."""
