"""Memory with a body: encoder, heads, rollout and the meta-trainer.

Shapes: B lifetimes side by side, T steps of each, A actions, D width. Batch first: `[B, T, ...]`.
"""

from .agent import Agent as Agent
from .agent import Decision as Decision
from .encoder import Encoder as Encoder
from .heads import PolicyHead as PolicyHead
from .heads import masked_categorical as masked_categorical
from .lifetime_returns import LifetimeReturns as LifetimeReturns
from .meta_trainer import MetaTrainer as MetaTrainer
from .normalise import RunningScale as RunningScale
from .ppo import PPOLoss as PPOLoss
from .returns import Credit as Credit
from .returns import cut_points as cut_points
from .returns import lifetime_advantages as lifetime_advantages
from .rollout import MemoryReset as MemoryReset
from .rollout import Rollout as Rollout
from .schedules import Constant as Constant
from .schedules import Horizon as Horizon
from .schedules import Linear as Linear
from .schedules import Schedule as Schedule
from .trajectory import Trajectory as Trajectory
