"""Counts: the number of attended pairs of a rule, as closed forms with the regions where they hold."""

from lattend.counts.count import Count as Count
from lattend.counts.counting import forget as forget
from lattend.counts.reach import Reach as Reach
from lattend.counts.tiles import tile_counts as tile_counts
