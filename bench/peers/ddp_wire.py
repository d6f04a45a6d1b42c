"""PyTorch's side of bench_ddp's wire: the same net and the same figures as bench/ddp/wire.hpp, on
ranks started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. BRAID_INTERFACE is this rank's
address. Prints one line of JSON on rank 0."""

import ipaddress
import json
import os
import socket
import statistics
import subprocess
import time

from cores import pin, pinned_cores

LAYERS, WIDTH, ROWS, FEW, STEPS, WARM = 12, 1024, 1024, 8, 7, 3


def interface(address):
    """Returns the name of the interface that has this address."""
    for line in subprocess.check_output(["ip", "-o", "addr"], text=True).splitlines():
        words = line.split()
        if words[2] == "inet" and words[3].split("/")[0] == address:
            return words[1]
    raise RuntimeError(f"no interface has the address {ipaddress.ip_address(address)}")


cores = pinned_cores()
pin(cores and [cores[int(os.environ["RANK"]) % len(cores)]])
os.environ["OMP_NUM_THREADS"] = "1"
if "BRAID_INTERFACE" in os.environ:
    os.environ["GLOO_SOCKET_IFNAME"] = interface(os.environ["BRAID_INTERFACE"])
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")


def step_seconds(rows, hook=None, begin=lambda: None):
    torch.manual_seed(1)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers)
    model = DistributedDataParallel(net, bucket_cap_mb=4)
    if hook:
        model.register_comm_hook(None, hook)
    x = torch.randn(rows, WIDTH)
    times = []
    for i in range(WARM + STEPS):
        model.zero_grad()
        dist.barrier()
        start = time.perf_counter()
        begin()
        model(x).sum().backward()
        if i >= WARM:
            times.append(time.perf_counter() - start)
    slowest = torch.tensor([statistics.median(times)], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


buckets = []
started = 0.0


def begin():
    global started
    buckets.clear()
    started = time.perf_counter()


def record(_, bucket):
    buckets.append((bucket.buffer().numel(), time.perf_counter() - started))
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


compute = step_seconds(ROWS, record, begin)
reduce, end = [], 0.0
for numel, ready in buckets:
    tensor = torch.zeros(numel)
    times = []
    for _ in range(3):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - start)
    reduce.append(statistics.median(times))
    end = max(end, ready) + reduce[-1]
bound = max(end, compute)
step = step_seconds(ROWS)
few = step_seconds(FEW)
few_bf16 = step_seconds(FEW, default_hooks.bf16_compress_hook)
if dist.get_rank() == 0:
    hidden = lambda total: 1 - (total - compute) / sum(reduce)
    print(
        json.dumps(
            {
                "peer": f"torch {torch.__version__} on {socket.gethostname()}",
                "buckets": len(buckets),
                "compute": 1e3 * compute,
                "reduce": 1e3 * sum(reduce),
                "bound": 1e3 * bound,
                "step": 1e3 * step,
                "hidden": hidden(step),
                "bound_hidden": hidden(bound),
                "share": hidden(step) / hidden(bound),
                "few": 1e3 * few,
                "few_bf16": 1e3 * few_bf16,
                "compression": few / few_bf16,
            }
        ),
        flush=True,
    )
dist.destroy_process_group()
