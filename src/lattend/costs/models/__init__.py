"""Models: whole models from their config.json, and how much of a machine a run of one uses."""

from lattend.costs.models.config import config as config
from lattend.costs.models.model import Model as Model
from lattend.costs.models.utilisation import Utilisation as Utilisation
from lattend.costs.models.utilisation import mfu as mfu
from lattend.costs.models.work import Work as Work
