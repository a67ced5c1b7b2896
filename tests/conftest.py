"""One thread per process: small matrices gain nothing from more, and tests share the cores."""

import os

import torch

os.environ["OMP_NUM_THREADS"] = "1"  # for the commands that tests start
torch.set_num_threads(1)
