"""Memory with a body: encoder, heads, rollout and the meta-trainer.

Shapes: B lifetimes side by side, T steps of each, A actions, D width. Batch first: `[B, T, ...]`.
"""

from .actions import Actions as Actions
from .actions import actions_of as actions_of
from .actions import masked_categorical as masked_categorical
from .agent import Agent as Agent
from .agent import Decision as Decision
from .auxiliary import Auxiliary as Auxiliary
from .boundary_discounts import boundary_discounts as boundary_discounts
from .encoder import Encoder as Encoder
from .evolution import Evolution as Evolution
from .evolution import antithetic_estimate as antithetic_estimate
from .extras import Extras as Extras
from .gradient_horizon import Agreement as Agreement
from .gradient_horizon import gradient_agreement as gradient_agreement
from .heads import PolicyHead as PolicyHead
from .interventions import Exchanged as Exchanged
from .interventions import Frozen as Frozen
from .interventions import Restored as Restored
from .life_regret import episode_regrets as episode_regrets
from .life_regret import grouped_regret as grouped_regret
from .lifetime_returns import LifetimeReturns as LifetimeReturns
from .luck import SharedLuck as SharedLuck
from .meta_trainer import MetaTrainer as MetaTrainer
from .moment import Moment as Moment
from .normalise import RunningScale as RunningScale
from .ppo import PPOLoss as PPOLoss
from .random_policy import RandomPolicy as RandomPolicy
from .reading import Reading as Reading
from .reading import read_in_windows as read_in_windows
from .reading import read_slice as read_slice
from .returns import Credit as Credit
from .returns import cut_points as cut_points
from .returns import lifetime_advantages as lifetime_advantages
from .rollout import Actor as Actor
from .rollout import Ending as Ending
from .rollout import MemoryReset as MemoryReset
from .rollout import Rollout as Rollout
from .schedules import Constant as Constant
from .schedules import Horizon as Horizon
from .schedules import Linear as Linear
from .schedules import Schedule as Schedule
from .slice_start import SliceStart as SliceStart
from .slice_start import staleness as staleness
from .snapshots import Snapshots as Snapshots
from .snapshots import Watch as Watch
from .trainer import Iteration as Iteration
from .trainer import Trainer as Trainer
from .trajectory import Trajectory as Trajectory
from .transfer import Transfer as Transfer
from .treatment import Intervention as Intervention
from .treatment import Treatment as Treatment
