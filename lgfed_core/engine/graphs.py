"""One step, again and again: on a GPU as a CUDA graph, recorded once a round and played from there.

A step of small networks is a hundred kernels or more, each done in microseconds; to call them one
by one takes Python far longer. The first step of a round runs as written, and makes ready what
CUDA's libraries need; the second is recorded, which runs nothing; the graph plays all others. It
reads and writes the very tensors of the round, so a step finds its own place in them by a counter
that lives on the device and that it moves on itself.
"""

from collections.abc import Callable
from contextlib import suppress

import torch

LEAST = 4  # steps, below which recording costs more than it saves


class Graphs:
    """Plays steps on ``place``; as written where that is no GPU, or once CUDA could not record."""

    def __init__(self, place: torch.device):
        self.able = place.type == "cuda"
        self.place = place
        self.held: tuple | None = None  # stream, memory and the last graph, which keeps the memory

    def play(self, step: Callable[[], None], times: int) -> None:
        """Take ``step`` so many ``times``, which are all alike but for the tensors they find."""
        graph, taken = None, 0
        if self.able and times >= LEAST:
            step()
            graph, taken = self._recorded(step), 1
        for _ in range(taken, times):
            (graph.replay if graph else step)()

    def forget(self) -> None:
        """Give back the memory of the last graph: what it played did not fit."""
        self.held = None

    def _recorded(self, step: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
        """``step`` as a graph; None where it does what cannot be recorded, now and ever after."""
        stream, pool, _ = self.held or (
            torch.cuda.Stream(self.place),
            torch.cuda.graph_pool_handle(),
            None,
        )
        usual, graph = torch.cuda.current_stream(self.place), torch.cuda.CUDAGraph()
        stream.wait_stream(usual)
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=pool)
                try:
                    step()
                finally:
                    graph.capture_end()
        except RuntimeError:  # nothing has run: the steps go on as written
            self.able, self.held = False, None
            with suppress(RuntimeError):
                graph.reset()
            return None
        usual.wait_stream(stream)
        self.held = stream, pool, graph
        return graph
