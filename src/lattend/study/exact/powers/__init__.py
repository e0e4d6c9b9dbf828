"""Powers of a matrix M(h): for which h they vanish, stay bounded or grow, how fast, and what they keep."""
