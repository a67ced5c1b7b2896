"""The never-ending stream of tasks, and the truth about how well one could do.

Shapes: B lifetimes side by side, T steps, A actions, K segments of a life, E episodes.
"""

from typing import TYPE_CHECKING, Any

from .actions import random_actions as random_actions
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
from .best_play import BestAction as BestAction
from .best_play import Oracle as Oracle
from .best_play import best_actions as best_actions
from .best_play import unknown_best_play as unknown_best_play
from .cart_pole import CartPoleEnv as CartPoleEnv
from .cart_pole import CartPoleTask as CartPoleTask
from .cart_pole_family import CartPole as CartPole
from .check import check_family as check_family
from .check_findings import Finding as Finding
from .choices import check_choice as check_choice
from .classic_play import best_classic_actions as best_classic_actions
from .crowd import Crowd as Crowd
from .dark_room import DarkRoom as DarkRoom
from .dark_room import KeyDoor as KeyDoor
from .dark_room_references import sweep_returns as sweep_returns
from .drifting_bandit import DriftingBandit as DriftingBandit
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
from .evidence import Evidence as Evidence
from .evidence import Informed as Informed
from .evidence import standard_error as standard_error
from .exchanging_goals import ExchangingGoals as ExchangingGoals
from .faults import EnvironmentFailed as EnvironmentFailed
from .faults import EnvironmentFault as EnvironmentFault
from .faults import EnvironmentMisbehaved as EnvironmentMisbehaved
from .finite_model import FiniteModel as FiniteModel
from .finite_task import FiniteEnv as FiniteEnv
from .finite_task import FiniteTask as FiniteTask
from .gittins import gittins_indices as gittins_indices
from .gymnasium_family import GymnasiumFamily as GymnasiumFamily
from .gymnasium_simulator import GymnasiumSimulator as GymnasiumSimulator
from .hashed_noise import uniforms as uniforms
from .interface import INPUTS as INPUTS
from .interface import PREVIOUS_PARTS as PREVIOUS_PARTS
from .interface import Array as Array
from .interface import Channel as Channel
from .interface import Interface as Interface
from .interface import Observation as Observation
from .knowledge import knowledge_width as knowledge_width
from .legal_actions import LegalActions as LegalActions
from .lengths import RandomCount as RandomCount
from .lengths import RandomLength as RandomLength
from .lifetime import Lifetime as Lifetime
from .making import Changes as Changes
from .missions import mission_channel as mission_channel
from .missions import mission_tokens as mission_tokens
from .plugins import origin as origin
from .plugins import plugins as plugins
from .recall import RecallEnv as RecallEnv
from .recall import RecallTask as RecallTask
from .recall_families import Autoencode as Autoencode
from .recall_families import RepeatFirst as RepeatFirst
from .recall_families import RepeatPrevious as RepeatPrevious
from .reference_files import read_reference as read_reference
from .reference_files import reference_path as reference_path
from .reference_files import reference_text as reference_text
from .reference_files import shipped_reference as shipped_reference
from .registration import make_lifetime as make_lifetime
from .regret import EpisodeCurve as EpisodeCurve
from .regret import FailureSplit as FailureSplit
from .regret import check_reference as check_reference
from .regret import episode_regret as episode_regret
from .regret import failure_and_slowness as failure_and_slowness
from .regret import is_provisional as is_provisional
from .regret import normalised_regret as normalised_regret
from .regret import pooled_regret as pooled_regret
from .regret import raw_regret as raw_regret
from .regret import reference_gap as reference_gap
from .regret import reference_problem as reference_problem
from .regret import regret_by_episode as regret_by_episode
from .regret import regret_error as regret_error
from .regret import task_gaps as task_gaps
from .regret import valid_reference as valid_reference
from .replay import replay as replay
from .schedule import Independent as Independent
from .schedule import NeverRepeating as NeverRepeating
from .schedule import Recurring as Recurring
from .schedule import Schedule as Schedule
from .schedule_measured import MeasuredCurriculum as MeasuredCurriculum
from .schedule_mixed import Blurry as Blurry
from .schedule_mixed import Curriculum as Curriculum
from .schedule_mixed import Drifting as Drifting
from .schedule_mixed import DriftingFamily as DriftingFamily
from .schedule_mixed import Nested as Nested
from .schedule_mixed import Shuffled as Shuffled
from .simulator import Simulator as Simulator
from .simulator import Transition as Transition
from .split import Split as Split
from .split import task_key as task_key
from .stream import Stream as Stream
from .t_maze import TMaze as TMaze
from .tabular_mdp import TabularMDP as TabularMDP
from .tabular_references import tabular_totals as tabular_totals
from .task import Family as Family
from .task import Length as Length
from .task import Reference as Reference
from .task import Segment as Segment
from .task import Task as Task
from .task_specs import TASK_KEYS as TASK_KEYS
from .task_specs import TaskSpec as TaskSpec
from .task_specs import family_of as family_of
from .task_specs import reference_task as reference_task
from .task_specs import spec_of as spec_of
from .task_specs import task_stream as task_stream
from .workers import WorkerFailed as WorkerFailed
from .workers import Workers as Workers

if TYPE_CHECKING:
    from .minigrid import HiddenReactions as HiddenReactions
    from .minigrid import MinigridFamily as MinigridFamily


def __getattr__(name: str) -> Any:
    """Import minigrid only where its families are asked for: it doubles the time of this import."""
    if name not in ("MinigridFamily", "HiddenReactions"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import minigrid

    return getattr(minigrid, name)
