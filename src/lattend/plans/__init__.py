"""Plans: which tiles of pairs to compute, in which order of positions, for a rule at its numbers."""

from lattend.plans.plan import Plan as Plan
from lattend.plans.plan import plan as plan
