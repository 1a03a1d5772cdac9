"""The coordinator as whoever speaks to it sees it: which broker it is, what its refusals mean, and who we are to it."""
