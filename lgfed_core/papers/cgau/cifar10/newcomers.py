"""What a trained federation says to a client that was never trained: which row should it take?

A network with client rows has none for a newcomer. Three ways out, of which the CGAU paper leaves
the choice open:

* ``zero``: no client; equation (1) without its client terms;
* ``mean``: the mean of the rows of all trained clients;
* ``fitted_n``: n local steps on the newcomer's own training rows, from zero. Only its row moves;
  what is shared stays as it is, so nothing is sent to anybody.

A network without client rows has one way, ``as_it_is``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining
from lgfed_core.models.layout import Layout
from lgfed_core.partition import ClientIndices, Partition

KNOWN, AS_IT_IS = "known", "as_it_is"


def apart(partition: Partition, new: int) -> tuple[Partition, Partition]:
    """The first K - ``new`` clients, who train, and the last ``new``, who come later."""
    known = len(partition) - new

    def some(rows: ClientIndices, which: range) -> ClientIndices:
        return ClientIndices.from_lists([rows.of(k) for k in which])

    return tuple(
        Partition(
            f"{partition.name}, {word}",
            *(
                some(rows, which)
                for rows in (partition.train, partition.validation, partition.test)
            ),
        )
        for word, which in (("known", range(known)), ("new", range(known, len(partition))))
    )


def right(net: nn.Module, layout: Layout, shared: Tensor, row: Tensor, data: Split) -> int:
    """How many rows of ``data`` the model (shared [P_s], row [P_p]) gets right."""
    with torch.no_grad():
        outputs = functional_call(net.eval(), layout.views(shared, row), (data.x,))
    return int((outputs.argmax(-1) == data.y).sum())


def fitted(
    net: nn.Module,
    layout: Layout,
    shared: Tensor,
    data: Split,
    training: LocalTraining,
    steps: Sequence[int],
    seed: int,
) -> dict[int, Tensor]:
    """A newcomer's row [P_p] after each number of ``steps``, from zero, on its rows ``data``.

    SGD with momentum on cross-entropy, as in training, dropout included; the momentum is kept.
    """
    row = torch.zeros(layout.size_personal, requires_grad=True)
    sgd = torch.optim.SGD([row], training.lr, training.momentum)
    rng, out = torch.Generator().manual_seed(seed), {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # dropout
        for step in range(1, max(steps) + 1):
            at = torch.randint(len(data), (training.batch_size,), generator=rng)
            params = layout.views(shared, row)
            outputs = functional_call(net.train(), params, (data.x[at],))
            sgd.zero_grad()
            nn.functional.cross_entropy(outputs, data.y[at]).backward()
            sgd.step()
            if step in steps:
                out[step] = row.detach().clone()
    return out


def ways(
    net: nn.Module,
    layout: Layout,
    shared: Tensor,
    rows: Tensor,
    train: Split,
    training: LocalTraining,
    steps: Sequence[int],
    seed: int,
) -> dict[str, Tensor]:
    """Rows [P_p] that a newcomer with training rows ``train`` may take, by name.

    shared [P_s]: what was learnt together; rows [K, P_p]: those of the known clients.
    """
    if not layout.size_personal:
        return {AS_IT_IS: rows[0]}
    found = {"zero": torch.zeros_like(rows[0]), "mean": rows.mean(0)}
    each = fitted(net, layout, shared, train, training, steps, seed)
    return found | {f"fitted_{n}": row for n, row in each.items()}
