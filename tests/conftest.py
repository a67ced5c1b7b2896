"""One thread per process: small matrices gain nothing from more, and tests share the cores.

Ray is patient for the same reason.
"""

import os

import torch

PATIENT = {  # a busy machine starts Ray's own processes later than Ray waits for them by default
    "RAY_raylet_start_wait_time_s": "3600",
    "RAY_agent_register_timeout_ms": "3600000",  # without its agents a raylet ends itself
    "RAY_worker_register_timeout_seconds": "3600",
    "RAY_gcs_rpc_server_connect_timeout_s": "3600",
    "RAY_gcs_server_request_timeout_seconds": "3600",
    "RAY_health_check_initial_delay_ms": "3600000",
}

os.environ |= PATIENT
os.environ["OMP_NUM_THREADS"] = "1"  # for the commands that tests start
torch.set_num_threads(1)
