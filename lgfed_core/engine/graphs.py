"""One step, again and again: on a GPU as a CUDA graph, recorded once and played from there.

A step of small networks is a hundred kernels or more, each done in microseconds; to call them one
by one takes Python far longer. The first step of all runs as written, and makes ready what CUDA's
libraries need; the second is recorded, and the graph plays it and all others, in this round and in
those that follow. It reads and writes the very tensors that it was recorded with (`stack.Stack`),
so a step finds its own place in them by a counter that lives on the device and that it moves on
itself. What a step decides in Python, it decides in the second. A test is a step that each round
takes once.
"""

import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import torch

LEAST = 4  # steps, below which recording costs more than it saves
WAITED = "called a synchronizing CUDA operation"  # what PyTorch says of a step that asks the GPU

Step = Callable[[int | None], None]  # of its number, or of None: whichever the counter says


class Graphs:
    """Plays steps on ``place``; as written where that is no GPU, or where they cannot be recorded.

    A step that waits for the GPU cannot, and is not tried: a recording that CUDA breaks off leaves
    PyTorch's memory in disorder.
    """

    streams: ClassVar[dict[torch.device, torch.cuda.Stream]] = {}  # to record on, one a GPU

    def __init__(self, place: torch.device):
        self.able = place.type == "cuda"
        self.place = place
        self.pool: Any = None  # of memory, which all graphs share: one plays at a time
        self.held: dict[Hashable, tuple] = {}  # by whose it is: a step, and the graph of it
        self.written: set[Hashable] = set()  # whose steps `again` takes as written
        self.recorded = 0  # how many there were in all

    def play(self, step: Step, times: int, whose: Hashable = None) -> None:
        """Take ``step`` so many ``times``, which are all alike but for the tensors they find.

        Its graph is kept for later calls, until ``whose`` step is another one.
        """
        known, graph = self.held.get(whose, (None, None))
        graph, taken = graph if known == step else None, 0
        if graph is None and self.able and times >= LEAST:
            with waits() as found:
                step(None)
            self.able, taken = not found, 1
            graph = self._recorded(step) if self.able else None
            if graph:
                self.held[whose] = step, graph
        for number in range(taken, times):
            if graph:
                graph.replay()
            else:
                step(number)

    def again(self, step: Step, whose: Hashable) -> None:
        """Take ``step`` once more, as it will be taken often: from its second time on, by a graph.

        One that waits for the GPU, or cannot be recorded, is taken as written from then on.
        """
        known, graph = self.held.get(whose, (None, None))
        if known != step and self.able and whose not in self.written:
            with waits() as found:
                step(None)
            self.held[whose] = step, None
            self.written |= {whose} if found else set()
            return
        if graph is None and self.able and whose not in self.written:
            try:
                graph = self._record(step)
                self.held[whose] = step, graph
            except RuntimeError:  # memory may have run out
                self.written.add(whose)
        if graph:
            graph.replay()
        else:
            step(None)

    def retire(self, whose: Hashable) -> None:
        """Let go of a step and its tensors; its graph stays, as it keeps the memory pool."""
        if whose in self.held:
            self.held[whose] = None, self.held[whose][1]

    def forget(self) -> None:
        """Give back the memory of all graphs: what one of them played did not fit."""
        self.held.clear()
        self.pool = None

    def _recorded(self, step: Step) -> torch.cuda.CUDAGraph | None:
        """``step`` as a graph; None where it cannot be recorded, now and ever after."""
        for _ in range(2):
            try:
                return self._record(step)
            except torch.OutOfMemoryError:  # the first step's memory may be all that is missing
                self.forget()
                torch.cuda.empty_cache()
            except RuntimeError:
                break
        self.able = False
        self.forget()
        return None

    def _record(self, step: Step) -> torch.cuda.CUDAGraph:
        self.recorded += 1
        if self.place not in self.streams:
            self.streams[self.place] = torch.cuda.Stream(self.place)
        stream = self.streams[self.place]
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        usual, graph = torch.cuda.current_stream(self.place), torch.cuda.CUDAGraph()
        stream.wait_stream(usual)
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=self.pool)
                try:
                    step(None)
                finally:
                    graph.capture_end()
        except RuntimeError:
            with suppress(RuntimeError):
                graph.reset()
            raise
        usual.wait_stream(stream)
        return graph


@contextmanager
def waits() -> Iterator[list[str]]:
    """What inside waits for the GPU, in PyTorch's words; where somebody else looks, nothing."""
    found: list[str] = []
    if torch.cuda.get_sync_debug_mode():
        yield found
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for one in said:
        if WAITED in str(one.message):
            found.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
