"""Memories: maps with state, y_t, S_t = memory(x_t, S_{t-1}), that know nothing of agents or tasks.

Shapes, batch first everywhere:

    B   rows of the batch, one lifetime each         H   heads
    T   tokens                                       K   key_width
    D   width of inputs and outputs                  V   value_width
    N   chunks of a call                             C   tokens of a chunk

Every memory is a `MemoryCore`. `FastWeightMemory`, `ChannelGatedMemory` and `AttentionMemory` are
compositions of pieces; `GRU`, `LSTM` and `Memoryless` are baselines; `Stack` puts memories on top
of each other.
"""

from .attention import AttentionMemory as AttentionMemory
from .cache import Cache as Cache
from .cache import GrowingCache as GrowingCache
from .cache import SlidingWindow as SlidingWindow
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
from .core import MemoryCore as MemoryCore
from .exact import ExactScalar as ExactScalar
from .fast_weight import FastWeightMemory as FastWeightMemory
from .gates import ConstantRate as ConstantRate
from .gates import Gate as Gate
from .gates import NoDecay as NoDecay
from .gates import RetentionGate as RetentionGate
from .gates import WriteRate as WriteRate
from .heads import Heads as Heads
from .heads import Piece as Piece
from .memoryless import Memoryless as Memoryless
from .objective import DotProduct as DotProduct
from .objective import Objective as Objective
from .objective import SquaredError as SquaredError
from .readout import Readout as Readout
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .rule import Gates as Gates
from .rule import GradientStep as GradientStep
from .rwkv7 import GeneralisedDelta as GeneralisedDelta
from .snapshot import SnapshotChannel as SnapshotChannel
from .solver import Solver as Solver
from .stack import Stack as Stack
from .state import state_bytes as state_bytes
from .state import state_from_dict as state_from_dict
from .state import state_to_dict as state_to_dict
from .state import where_reset as where_reset
from .storage import SymmetricErase as SymmetricErase
from .views import Tokens as Tokens
from .views import Views as Views
