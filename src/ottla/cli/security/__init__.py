"""`ottla acls`, `users`, `quotas` and `certificates`: who may do what, and how much of it."""
