"""MiniGrid and BabyAI tasks: fast, exact environments and a planner that knows their optimum."""

from .best_play import best_minigrid_actions as best_minigrid_actions
from .best_play import best_rule_actions as best_rule_actions
from .family import MinigridFamily as MinigridFamily
from .family import MinigridTask as MinigridTask
from .fast_observation import use_fast_observations as use_fast_observations
from .planner import Plan as Plan
from .planner import optimal_return as optimal_return
from .planner import optimal_steps as optimal_steps
from .planner import plan as plan
from .recipe import Recipe as Recipe
from .rule_family import HiddenReactions as HiddenReactions
from .rule_family import RuleTask as RuleTask
from .rule_room import RuleRoom as RuleRoom
from .snapshot import SnapshotReset as SnapshotReset
from .variants import MemoryFromCue as MemoryFromCue
from .variants import TwoGoals as TwoGoals
from .variants import UnlockRooms as UnlockRooms
from .wrappers import PermutedActions as PermutedActions
