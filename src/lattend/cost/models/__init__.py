"""Models: whole models from their config.json, what serving takes, how much of a machine a run uses."""

from lattend.cost.models.configuration import config as config
from lattend.cost.models.model import Model as Model
from lattend.cost.models.model import ModelWork as ModelWork
from lattend.cost.models.serving_price import Serving as Serving
from lattend.cost.models.serving_price import serving as serving
from lattend.cost.models.utilisation import Utilisation as Utilisation
from lattend.cost.models.utilisation import mfu as mfu
