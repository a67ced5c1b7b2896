"""The never-ending stream of tasks, and the truth about how well one could do.

Shapes: B lifetimes side by side, T steps, A actions, K segments of a life, E episodes.
"""

from typing import TYPE_CHECKING, Any

from .adapter import Adapter as Adapter
from .adapter import interface_of as interface_of
from .bandit import BanditEnv as BanditEnv
from .bandit import BanditTask as BanditTask
from .bandit_families import BernoulliBandit as BernoulliBandit
from .bandit_families import MovingBandit as MovingBandit
from .bandit_references import Play as Play
from .bandit_references import Player as Player
from .bandit_references import draw_problems as draw_problems
from .bandit_references import play as play
from .bandit_references import players as players
from .bandit_references import reference_plays as reference_plays
from .crowd import Crowd as Crowd
from .dynamic_regret import DynamicRegret as DynamicRegret
from .dynamic_regret import RegretSplit as RegretSplit
from .dynamic_regret import Windows as Windows
from .dynamic_regret import dynamic_regret as dynamic_regret
from .dynamic_regret import rate_windows as rate_windows
from .dynamic_regret import return_windows as return_windows
from .dynamic_regret import split_regret as split_regret
from .dynamic_regret import window_width as window_width
from .episodes import CrowdStep as CrowdStep
from .episodes import EpisodeRecord as EpisodeRecord
from .gittins import gittins_indices as gittins_indices
from .gymnasium_family import GymnasiumFamily as GymnasiumFamily
from .gymnasium_simulator import GymnasiumSimulator as GymnasiumSimulator
from .interface import INPUTS as INPUTS
from .interface import Array as Array
from .interface import Channel as Channel
from .interface import Interface as Interface
from .interface import Observation as Observation
from .lifetime import Lifetime as Lifetime
from .missions import mission_channel as mission_channel
from .missions import mission_tokens as mission_tokens
from .regret import EpisodeCurve as EpisodeCurve
from .regret import FailureSplit as FailureSplit
from .regret import check_reference as check_reference
from .regret import failure_and_slowness as failure_and_slowness
from .regret import normalised_regret as normalised_regret
from .regret import pooled_regret as pooled_regret
from .regret import raw_regret as raw_regret
from .regret import reference_gap as reference_gap
from .regret import reference_problem as reference_problem
from .regret import regret_by_episode as regret_by_episode
from .regret import regret_error as regret_error
from .schedule import Independent as Independent
from .schedule import NeverRepeating as NeverRepeating
from .schedule import Recurring as Recurring
from .schedule import Schedule as Schedule
from .simulator import Simulator as Simulator
from .simulator import Transition as Transition
from .stream import Stream as Stream
from .task import Family as Family
from .task import Length as Length
from .task import Reference as Reference
from .task import Segment as Segment
from .task import Task as Task

if TYPE_CHECKING:
    from .minigrid import MinigridFamily as MinigridFamily


def __getattr__(name: str) -> Any:
    """Import minigrid only where its family is asked for: it doubles the time of this import."""
    if name != "MinigridFamily":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .minigrid import MinigridFamily

    return MinigridFamily
