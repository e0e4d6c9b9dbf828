"""Steering: the query that makes attention return wanted weights, its error, and why no query can."""
