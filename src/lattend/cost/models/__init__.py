"""Models: whole models from their config.json, and how much of a machine a run of one uses."""

from lattend.cost.models.configuration import config as config
from lattend.cost.models.model import Model as Model
from lattend.cost.models.utilisation import Utilisation as Utilisation
from lattend.cost.models.utilisation import mfu as mfu
from lattend.cost.models.work import ModelWork as ModelWork
