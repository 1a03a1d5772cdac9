"""The coordinators of groups and of transactions: which machine has which id, and what follows from its decisions."""
