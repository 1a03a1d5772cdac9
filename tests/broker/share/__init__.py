"""Share groups, by real requests to a broker."""
