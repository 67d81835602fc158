"""Lanes as one stack of tensors: every device of every run takes its step together.

The loss of one lane is lifted by `torch.func.vmap`; the sum over lanes has, for each lane, that
lane's own gradient. Lanes with fewer rows than others are padded, and rest once they are done.
"""

from collections.abc import Callable

import torch

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.seeds import draw

from .batched_evaluation import StackedTests
from .graphs import Graphs
from .identity import told_apart
from .looped import Looped
from .losses import Losses
from .phase import Job, Phase
from .round_plan import Given, Host
from .sheltered import moving
from .stack import Stack


class Batched(StackedTests):
    """All lanes at once, but for tests."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self.laid, self.tests = {}, {}
        self.most: int = 2**31  # lanes that train together; fewer once they did not fit
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self.place = phase.tensors["shared"].device
        self.graphs = Graphs(self.place)
        self.losses, self.host = Losses(phase), Host(phase)
        names = [told_apart(method) for method in phase.methods]
        kinds = [i for i, name in enumerate(names) if names.index(name) == i]  # a run of each
        self.stacks: dict[int, Stack] = {}  # of the last rounds, where graphs play them
        self.kinds = [  # runs of one method, and its steps
            ({r for r, name in enumerate(names) if name == names[i]}, self._steps(phase.methods[i]))
            for i in kinds
        ]

    def train(self, jobs: list[Job], round: int, lr: float) -> None:
        """Train each device of ``jobs``; see `looped.Looped.train`."""
        self.trained, self.before = jobs, self.phase.own(jobs)
        self.host.begin()
        devices = [self.place] if self.place.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            for runs, steps in self.kinds:
                slots = [slot for slot, (r, _) in enumerate(jobs) if r in runs]
                if slots:
                    self._fitting(slots, steps, round, lr)

    def ahead(self, jobs: Callable[[], list[Job]], round: int) -> None:
        """While a GPU is at work, lay out the next ``round``, in which ``jobs`` will train."""
        if self.place.type != "cpu":
            soon = jobs()
            kinds = ([job for job in soon if job[0] in runs] for runs, _ in self.kinds)
            stacks = [
                kind[i : i + self.most] for kind in kinds for i in range(0, len(kind), self.most)
            ]
            self.host.ahead(stacks, round)

    def _fitting(self, slots: list[int], steps: list[tuple], round: int, lr: float) -> None:
        """Train a stack, in parts where the memory of the device does not take all of it.

        What does not fit leaves nothing behind, so that a part begins where it would have begun.
        Dropout is drawn for a part together: its numbers depend on how many lanes fit.
        """
        jobs, done = [self.trained[slot] for slot in slots], 0
        while done < len(jobs):
            now = slice(done, done + min(self.most, len(jobs)))
            again = (done,) if done else ()
            torch.manual_seed(draw(self.phase.seeds[jobs[done][0]], round, *again))
            try:
                given = self.host.given(jobs[now], slots[now], steps, round, lr)
                self._play(given, steps, round, lr)
                done = now.stop
            except torch.OutOfMemoryError as error:
                lanes = len(jobs[now])
                if lanes == 1:
                    raise SettingsError(f"not even one device's training fits: {error}") from error
                self.most = -(-lanes // 2)
                self.graphs.forget()
                self.stacks.clear()
            if done < now.stop:  # by now the error holds no tensors any more
                torch.cuda.empty_cache()

    def _play(self, given: Given, steps: list[tuple], round: int, lr: float) -> None:
        """The steps of one stack, on the device alone: what the host knows is ``given`` before."""
        stack = self.stacks.pop(id(steps), None)
        if not stack or not stack.fits(given, round, lr):
            stack = None  # its memory is needed
            self.graphs.retire(id(steps))
            stack = Stack(self.phase, self.losses, steps, given, round, lr)
        stack.begin(given, round, lr)
        self.graphs.play(stack.step, given.batches, id(steps))
        stack.end()
        self.host.over(given)
        if self.graphs.able:
            self.stacks[id(steps)] = stack

    def close(self) -> None:
        """Let go of what holds memory: tests know these lanes, and graphs know the tests."""
        self.tests.clear()
        self.stacks.clear()
        self.graphs.forget()

    def _steps(self, method: Method) -> list[tuple]:
        """A method's steps, each with the names of the parameters that move."""
        net, steps = self.phase.net, method.steps(self.phase.net)
        return [(moving(net, step.params), step) for step in steps]


Engine = Looped | Batched  # what trains and tests lanes
