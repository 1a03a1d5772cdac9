"""`ottla cluster`: who leads, who is behind, what lies on which disk; and what is moved."""
