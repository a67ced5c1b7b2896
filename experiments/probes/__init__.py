"""Supervised tests of a memory without reinforcement learning; the verb `probe` runs them.

`task` says what a probe asks; `model` puts a memory between an encoder and a head; `member` is one
training; `study` runs many; `rules` asks update rules without any training.
"""

from .copying import Copying as Copying
from .recall import Overwriting as Overwriting
from .recall import Recall as Recall
from .regression import LinearRegression as LinearRegression
from .regression import NonlinearRegression as NonlinearRegression
from .task import Batch as Batch
from .task import Task as Task
from .tracking import PermutationComposition as PermutationComposition
from .tracking import RegisterMachine as RegisterMachine
