"""Charts: curves, planes and contours."""
