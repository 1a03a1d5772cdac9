"""`ottla trace`: what happens in a consumer or a producer, as a picture in a terminal."""
