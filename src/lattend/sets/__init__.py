"""Integer sets: the only folder that knows isl."""

from lattend.sets.bound import Bound as Bound
from lattend.sets.bound import bound_at as bound_at
from lattend.sets.build import moduli_of as moduli_of
from lattend.sets.build import region_of as region_of
from lattend.sets.pointset import PointSet as PointSet
from lattend.sets.pointset import can_count as can_count
from lattend.sets.pointset import summed as summed
from lattend.sets.pointset import within as within
from lattend.sets.polyhedron import Cone as Cone
from lattend.sets.polyhedron import Polyhedron as Polyhedron
from lattend.sets.region import Region as Region
from lattend.sets.space import Space as Space
