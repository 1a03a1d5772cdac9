"""`ottla trace`: what happens in a consumer, a producer or a broker, as a picture in a terminal."""
