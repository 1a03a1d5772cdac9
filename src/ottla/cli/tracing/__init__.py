"""`ottla trace`: show the internal events of a consumer, a producer or a broker in a terminal."""
