"""Images as tokens: patches, and a vision transformer."""
