"""Report: how results are read: one formatter of numbers, one writer of tables, one Report of both."""
