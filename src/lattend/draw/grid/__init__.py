"""Pictures of rules and plans: grids of (query, key) cells."""
