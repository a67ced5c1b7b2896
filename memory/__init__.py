"""Memories: maps with state, y_t, S_t = memory(x_t, S_{t-1}), that know nothing of agents or tasks.

Shapes, batch first everywhere:

    B   rows of the batch, one lifetime each         H   heads
    T   tokens                                       K   key_width
    D   width of inputs and outputs                  V   value_width
    N   chunks of a call                             C   tokens of a chunk

Every memory is a `MemoryCore`. `FastWeightMemory`, `ChannelGatedMemory` and `AttentionMemory` are
compositions of pieces; `GRU`, `LSTM` and `Memoryless` are baselines; `Stack` puts memories on top
of each other, `Chain` lets each feed the next, `Hybrid` puts two side by side.
"""

from .anchored import AnchoredGradient as AnchoredGradient
from .attention import AttentionMemory as AttentionMemory
from .backend import check_backends as check_backends
from .cache import Cache as Cache
from .cache import GrowingCache as GrowingCache
from .cache import SlidingWindow as SlidingWindow
from .cache_storage import AbsorbLosers as AbsorbLosers
from .cache_storage import Rehearse as Rehearse
from .cached_delta import CachedDelta as CachedDelta
from .cached_delta import Storage as Storage
from .cell_mixing import CellGates as CellGates
from .cell_mixing import CellMomentum as CellMomentum
from .cell_mixing import CellStep as CellStep
from .chain import Chain as Chain
from .channel_gates import BoundedRetention as BoundedRetention
from .channel_gates import ChannelRetention as ChannelRetention
from .channel_memory import ChannelGatedMemory as ChannelGatedMemory
from .channel_rule import ChannelDelta as ChannelDelta
from .channel_rule import ChannelHebbian as ChannelHebbian
from .channel_rule import ChannelRule as ChannelRule
from .channel_rule import Edits as Edits
from .channel_rule import FeedbackDelta as FeedbackDelta
from .channel_rule import SelectiveDelta as SelectiveDelta
from .channel_solver import ChannelSolver as ChannelSolver
from .channel_solver import ExactChannel as ExactChannel
from .compiled import compile_calls as compile_calls
from .compiled import eager as eager
from .core import MemoryCore as MemoryCore
from .diagnostics import Measures as Measures
from .diagnostics import diagnose as diagnose
from .diagnostics import layers_of as layers_of
from .diagnostics import observe as observe
from .diagnostics_capacity import capacity as capacity
from .diagnostics_capacity import random_pairs as random_pairs
from .diagnostics_capacity import recall_curve as recall_curve
from .diagnostics_gates import half_life as half_life
from .diagnostics_probe import Seen as Seen
from .diagnostics_state import effective_rank as effective_rank
from .diagnostics_state import stable_rank as stable_rank
from .estimator import Estimator as Estimator
from .estimator import Softmax as Softmax
from .estimator import TopK as TopK
from .exact import ExactScalar as ExactScalar
from .fast_net import FastNet as FastNet
from .fast_net import LinearNet as LinearNet
from .fast_net import SwiGLUNet as SwiGLUNet
from .fast_net import TwoLayerNet as TwoLayerNet
from .fast_weight import FastWeightMemory as FastWeightMemory
from .gates import ConstantRate as ConstantRate
from .gates import FixedRetention as FixedRetention
from .gates import Gate as Gate
from .gates import NoDecay as NoDecay
from .gates import RetentionGate as RetentionGate
from .gates import WriteRate as WriteRate
from .heads import Heads as Heads
from .heads import Piece as Piece
from .hybrid import Hybrid as Hybrid
from .kernel import GaussianKernel as GaussianKernel
from .kernel import KernelRidge as KernelRidge
from .kernel import NadarayaWatson as NadarayaWatson
from .laws import LAWS as LAWS
from .memoryless import Memoryless as Memoryless
from .mesa import Mesa as Mesa
from .mixing import Decay as Decay
from .mixing import MomentumDecay as MomentumDecay
from .mixing import RunningMean as RunningMean
from .momentum import ExactMomentum as ExactMomentum
from .motion import Mixing as Mixing
from .muon import Orthogonalise as Orthogonalise
from .muon import PostStep as PostStep
from .next_value import NextValue as NextValue
from .normalised_delta import NormalisedDelta as NormalisedDelta
from .objective import DotProduct as DotProduct
from .objective import Objective as Objective
from .objective import SquaredError as SquaredError
from .orthogonal_mixing import OrthogonalMomentumDecay as OrthogonalMomentumDecay
from .pair_weights import AgeWeights as AgeWeights
from .pair_weights import EnergyWeights as EnergyWeights
from .pair_weights import PairWeights as PairWeights
from .periodic import PeriodicStep as PeriodicStep
from .polynomial import Polynomial as Polynomial
from .readout import Readout as Readout
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .ridge import RidgeGates as RidgeGates
from .ridge import RidgeStep as RidgeStep
from .robust import HuberError as HuberError
from .robust import PowerError as PowerError
from .rule import Gates as Gates
from .rule import GradientStep as GradientStep
from .rule import Rule as Rule
from .rwkv7 import GeneralisedDelta as GeneralisedDelta
from .snapshot import SnapshotChannel as SnapshotChannel
from .solver import Solver as Solver
from .stack import Stack as Stack
from .state import state_bytes as state_bytes
from .state import state_from_dict as state_from_dict
from .state import state_to_dict as state_to_dict
from .state import where_reset as where_reset
from .steps import ImplicitStep as ImplicitStep
from .steps import MomentumGates as MomentumGates
from .steps import MomentumStep as MomentumStep
from .steps import NormalisedStep as NormalisedStep
from .steps import SelectiveStep as SelectiveStep
from .storage import SymmetricErase as SymmetricErase
from .systems import Cholesky as Cholesky
from .systems import ConjugateGradient as ConjugateGradient
from .systems import SystemSolver as SystemSolver
from .value_channels import ValueChannelRule as ValueChannelRule
from .value_channels import ValueChannelSolver as ValueChannelSolver
from .views import Tokens as Tokens
from .views import TokenViews as TokenViews
from .views import Views as Views
from .windowed import ExactWindow as ExactWindow
from .wrapped_solvers import Normalised as Normalised
from .wrapped_solvers import Skip as Skip
