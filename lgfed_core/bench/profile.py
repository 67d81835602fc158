"""Where the time of a round goes, by PyTorch's profiler."""

import time

import torch
from torch.profiler import ProfilerActivity, profile

from lgfed_core.engine.trackers import Global

from .ours import Ours
from .task import Task

TOP = 12  # operations that are named
ASKED = ("aten::_local_scalar_dense", "cudaStreamSynchronize")  # the host waits for a number
PLAYED = ("cudaGraphLaunch",)


def profiled(task: Task, device: torch.device, seeds: int = 10, rounds: int = 3) -> dict:
    """A round of FedAvg in one stack of ``seeds``, tested on the whole test set after each.

    Returns milliseconds a round without its test and with it; how often a round asks the device for
    a number, plays a graph, and how many recordings there were in all; and its costliest
    operations: [{"operation", "ms", "calls", "share"}], by the time of the device.
    """
    fed = task.federation(list(range(seeds)), device)
    ours = Ours(fed, task, tracker=Global((), True), workers=1)  # others' time is not seen
    number = iter(range(10**6))

    def some(many: int, test: bool) -> float:
        began = time.perf_counter()
        for _ in range(many):
            ours.round(at := next(number))
            if test:
                ours.tracker.after(at + 1, 10**6, ours.engine)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1000 * (time.perf_counter() - began) / many

    try:
        some(1, True)  # warms up
        train, whole = some(rounds, False), some(rounds, True)
        kinds = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * (device.type == "cuda")]
        with profile(activities=kinds, acc_events=True) as seen:
            some(rounds, True)
    finally:
        ours.close()
    found = seen.key_averages()
    own = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    took = {event: getattr(event, own) / 1000 / rounds for event in found}  # microseconds
    all_of_it = sum(took.values())
    graphs = getattr(ours.engine, "graphs", None)
    return {
        "task": task.name,
        "seeds": seeds,
        "ms_without_test": train,
        "ms_with_test": whole,
        "asked": sum(event.count for event in found if event.key in ASKED) / rounds,
        "graphs_played": sum(event.count for event in found if event.key in PLAYED) / rounds,
        "recorded": graphs.recorded if graphs else 0,
        "operations": [
            {
                "operation": event.key[:80],
                "ms": took[event],
                "calls": event.count / rounds,
                "share": took[event] / all_of_it,
            }
            for event in sorted(took, key=took.__getitem__, reverse=True)[:TOP]
        ],
    }
