"""The tour: every rule of the catalogue drawn, counted and checked, in the terminal and on a page."""
