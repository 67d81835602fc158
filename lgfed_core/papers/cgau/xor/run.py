"""XOR with two clients, one gated unit: Figures 1 and 3 of the CGAU paper (appendix A), claim C8.

Four clusters at (+-1, +-1); the classes are red where the features have the same sign and blue
where they have not. The "up" client holds the clusters with x2 > 0, the "down" client the others.
Not federated: the figure is about what one unit can express. The paper says neither how many points
there are nor how it trains; here Adam lowers the cross-entropy of all points.

Many seeds train side by side, each a network of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lgfed_core.errors import one_of
from lgfed_core.evidence.claims import Part, agreed, said, tested
from lgfed_core.evidence.verdict import Evidence, every, greater
from lgfed_core.models import make
from lgfed_core.models.gated_unit import CGAU, SWITCHES, glorot
from lgfed_core.papers.in_words import kind, less
from lgfed_core.papers.settings import Checked

UP, DOWN = 0, 1
CLASSES = ("features of the same sign", "of opposite signs")  # the paper's red and blue
SOLVED = 0.99  # of the points
INTACT = (0.75, 0.85, 0.95)  # of a client's points: right still, from half way to guessing on
NETS = ("mlp", "gated", "cgau")  # two tanh units; one unit without and with its client
SCALES = {
    "smoke": dict(seeds=4, steps=150),
    "quick": dict(seeds=30, steps=600),
    "paper": dict(seeds=200, steps=1500),
}


@dataclass(frozen=True)
class Settings(Checked):
    """How many networks, and how each is trained."""

    scale: str = "quick"
    seeds: int = 40
    steps: int = 800
    lr: float = 0.05
    points: int = 50  # per cluster
    spread: float = 0.25  # standard deviation of a cluster


def settings(scale: str = "quick", **changes) -> Settings:
    """Settings of a scale, with single values changed. Raises SettingsError for an unknown scale,
    and for values that cannot be meant."""
    one_of("scale", scale, SCALES)
    return Settings(**{"scale": scale, **SCALES[scale], **changes})


def points(cfg: Settings) -> tuple[Tensor, Tensor, Tensor]:
    """The data: x [n, 2], class y [n] (1 is blue) and client [n]."""
    rng = torch.Generator().manual_seed(0)
    corner = torch.tensor([[1.0, 1], [-1, 1], [1, -1], [-1, -1]]).repeat_interleave(cfg.points, 0)
    x = corner + cfg.spread * torch.randn(corner.shape, generator=rng)  # [n, 2]
    return x, (corner[:, 0] != corner[:, 1]).float(), (corner[:, 1] < 0).long()


class MLP(nn.Module):
    """Two hidden tanh units; knows nothing of clients. 9 parameters."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = glorot(nn.Linear(2, 2)), glorot(nn.Linear(2, 1))

    def forward(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> Tensor:
        """x [n, 2], client [n] -> logits [n]."""
        return self.out(self.hidden(x).tanh())[..., 0]


class OneUnit(nn.Module):
    """One gated unit, then its sign: 12 parameters with two clients, four of them the clients'."""

    def __init__(self, conditioned: bool = True):
        super().__init__()
        self.conditioned = conditioned
        self.unit, self.out = CGAU(2, 1, clients=2), glorot(nn.Linear(1, 1))

    def parts(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> tuple[Tensor, Tensor]:
        """Filter and gate activation, [n] each, with the parts named in ``off`` switched off."""
        h = F.one_hot(client, 2).to(x) if self.conditioned else None
        f, g = self.unit.parts(x, h, off)
        return f[..., 0], g[..., 0]

    def forward(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> Tensor:
        """x [n, 2], client [n] -> logits [n]."""
        f, g = self.parts(x, client, off)
        return self.out((f * g)[..., None])[..., 0]


@dataclass(frozen=True)
class Trained:
    """Networks of one kind: ``params`` have a seed axis [S, ...]."""

    net: nn.Module
    params: dict[str, Tensor]

    def of(self, seed: int) -> nn.Module:
        """The network of one seed."""
        self.net.load_state_dict({n: p[seed] for n, p in self.params.items()})
        return self.net

    def logits(self, x: Tensor, client: Tensor, off: tuple[str, ...] = ()) -> Tensor:
        """x [n, 2], client [n] -> [S, n]."""
        with torch.no_grad():
            return vmap(lambda p: functional_call(self.net, p, (x, client, off)))(self.params)


def train(kind: str, cfg: Settings) -> Trained:
    """``cfg.seeds`` networks of one kind of `NETS`, each from the weights of its own seed."""
    build: Callable[[], nn.Module] = {"mlp": MLP, "gated": lambda: OneUnit(False), "cgau": OneUnit}[
        kind
    ]
    nets = [make(build, seed) for seed in range(cfg.seeds)]
    params = {
        name: torch.stack([net.get_parameter(name).detach() for net in nets]).requires_grad_()
        for name, _ in nets[0].named_parameters()
    }
    x, y, client = points(cfg)

    def loss(p: dict[str, Tensor]) -> Tensor:
        return F.binary_cross_entropy_with_logits(functional_call(nets[0], p, (x, client)), y)

    optimiser = torch.optim.Adam(params.values(), cfg.lr)
    for _ in range(cfg.steps):
        optimiser.zero_grad()
        vmap(loss)(params).sum().backward()
        optimiser.step()
    return Trained(nets[0], {n: p.detach() for n, p in params.items()})


def accuracies(trained: Trained, cfg: Settings) -> pd.DataFrame:
    """Share of right points per seed: all, then each client with each part switched off.

    Columns (which points, what is off): all | up | down by nothing | modulation | expression |
    both.
    """
    x, y, client = points(cfg)
    out = {}
    offs = {"nothing": (), **{s: (s,) for s in SWITCHES}, "both": SWITCHES}
    for what, off in offs.items():
        right = (trained.logits(x, client, off) > 0) == (y > 0)  # [S, n]
        for who, mine in (("all", client >= 0), ("up", client == UP), ("down", client == DOWN)):
            out[who, what] = right[:, mine].float().mean(1).numpy()
    return pd.DataFrame(out).rename_axis("seed")


def solves(found: pd.DataFrame) -> pd.Series:
    """Which seeds are right on `SOLVED` of all points, with both parts; found: of `accuracies`."""
    return found["all", "nothing"] >= SOLVED


def roles(found: pd.DataFrame, intact: float) -> pd.Series:
    """For each seed what the two parts do, in words; found: of `accuracies`.

    "one each": without modulation exactly one client is still right (from ``intact`` on), without
    expression exactly the other. "not solved": those that do not (`solves`). The paper gives no
    ``intact``, and the words depend on it: see `ways`.
    """

    def role(row: pd.Series) -> str:
        lost = {s: {k for k in ("up", "down") if row[k, s] < intact} for s in SWITCHES}
        if not (lost["modulation"] or lost["expression"]):
            return "needs neither"
        if not (lost["modulation"] and lost["expression"]):
            return f"{'modulation' if lost['modulation'] else 'expression'} alone"
        one_each = all(len(v) == 1 for v in lost.values())
        apart = lost["modulation"] != lost["expression"]
        return "one each" if one_each and apart else "mixed"

    return found.apply(role, axis=1).where(solves(found), "not solved")


def ways(found: pd.DataFrame) -> pd.DataFrame:
    """`roles` at each threshold of `INTACT`: a line per seed, a column per threshold."""
    return pd.DataFrame({intact: roles(found, intact) for intact in INTACT})


def counts(found: pd.DataFrame) -> pd.DataFrame:
    """How many of the starts that solve it have each role: a line per role, the commonest first, a
    column per threshold of `INTACT`."""
    many = (
        ways(found)[solves(found)].apply(lambda column: column.value_counts()).fillna(0).astype(int)
    )
    return many.loc[many.sum(axis=1).sort_values(ascending=False, kind="stable").index]


def clearest(found: pd.DataFrame) -> int:
    """The start to draw: of those with "one each", by every threshold if there are any (or else
    solved), the one that needs both most."""
    each, solved = ways(found) == "one each", solves(found)
    for wanted in (each.all(axis=1), each.any(axis=1), solved, solved | True):
        if wanted.any():
            return int((found["all", "modulation"] + found["all", "expression"])[wanted].idxmin())


def halves(found: dict[str, pd.DataFrame]) -> dict[str, Part]:
    """The two halves of C8, each over the starts that it is about: all, and those that solve it.

    What counts as right without a part is ours to say, so the second is asked at each threshold of
    `INTACT`, and must hold at all of them, or fail at all: its p-values are the largest. Its
    estimate is that of the threshold with the weakest evidence, its interval spans all three.
    """
    words, solved = ways(found["cgau"]), solves(found["cgau"])
    first, second = "one unit solves it", "one part for each client"
    each = (words[solved] == "one each").astype(float)
    parts = [tested(second, each[at].to_numpy(), greater, 0.5) for at in INTACT]
    return {first: tested(first, solved.to_numpy(float), greater, 0.5), second: agreed(parts)}


def claim(found: dict[str, pd.DataFrame]) -> dict[str, Evidence]:
    """The two halves of C8 as tests over seeds; found: `accuracies` by kind of network.

    That conditioning lets one unit solve it: it does in most seeds (more than half). That
    modulation carries one client and expression the other: in most of the seeds that solve it, at
    whichever threshold (`halves`).
    """
    parts = {f"C8, {name}": part.evidence for name, part in halves(found).items()}
    return parts | {"C8": every(list(parts.values()))}


def take_home(found: dict[str, pd.DataFrame]) -> str:
    """Four Markdown lines of what came out; found: `accuracies` by kind of network."""
    solved = {kind: int(solves(a).sum()) for kind, a in found.items()}
    starts = {kind: len(a) for kind, a in found.items()}
    # False if fewer than half of the starts solved it: then C8 fails, and this says the share.
    enough = (
        f"- **One unit with its client** solves it from {solved['cgau']} of "
        f"{starts['cgau']} starts."
    )
    parts = f"- {one_each(found['cgau'])}"
    # False if no start without a client solved it: one is proof that it can.
    without = (
        f"- **One gated unit without any client** solves it from {solved['gated']} of "
        f"{starts['gated']} starts"
    )
    without += ": it can." if solved["gated"] else "."
    # False if two units without gates or clients solved it from another number of starts.
    plain = f"- **Two tanh units** solve it from {solved['mlp']} of {starts['mlp']} starts."
    return "\n".join([enough, parts, without, plain])


def one_each(found: pd.DataFrame) -> str:
    """In how many of the starts that solve it each part carries one client, at each threshold, as a
    sentence; found: of `accuracies`."""
    of_each = counts(found)
    many = of_each.reindex(["one each"], fill_value=0).loc["one each"].tolist()
    solved = int(of_each.iloc[:, 0].sum())
    if not solved:
        return "**Each part carries one client** in none: no start solves it."
    most = {n > solved / 2 for n in many}
    # False if the counts came to lie all above one half, or all below: then it says so.
    word = "whether most do depends on that"
    if len(most) == 1:
        word = "most do, by each of these" if most == {True} else "most do not, by any of these"
    each, at = (", ".join(texts[:-1]) + f" or {texts[-1]}" for texts in (
        [str(n) for n in many], [f"{100 * intact:.0f}" for intact in INTACT]))  # fmt: skip
    return (
        f"**Each part carries one client** in {each} of the {solved} starts that solve it, where a "
        f"client counts as right from {at} % of its points on: {word}."
    )


def drawn(found: pd.DataFrame) -> str:
    """Which start `clearest` is, of how many, and what is left of its four halves: a line; found:
    of `accuracies`."""
    seed, words = clearest(found), ways(found)
    solved = int(solves(found).sum())
    alike = int((words == words.loc[seed]).all(axis=1).sum())
    left = (
        f"{who} without {part} {100 * found.loc[seed, (who, part)]:.0f} %"
        for part in SWITCHES
        for who in ("up", "down")
    )
    return (
        f"CGAU from start {seed}, the clearest of {solved} that solve it, {alike} of which have "
        f"its roles; right are: {', '.join(left)}"
    )


def what_the_client_is_worth(found: dict[str, pd.DataFrame]) -> str:
    """Whether one gated unit solves it from more starts with its client than without, as a
    sentence; found: `accuracies` by kind of network, each start's weights drawn alike."""
    solved = [100.0 * solves(found[net]) for net in ("cgau", "gated")]
    more, starts = less(*solved)
    # False if the interval moved to the other side of zero, or came to hold it.
    way = kind(more, ("makes", "does not make", "is not shown to make"))
    return (
        f"**Knowing the client {way} the solution easier to find**: of 100 starts one gated unit "
        f"solves it from so many more with its client than without: {said(more, starts, digits=0)}."
    )


def grid(reach: float = 2.2, steps: int = 121) -> tuple[np.ndarray, Tensor, Tensor]:
    """A square to draw on: ticks [s], points [s*s, 2] and the client of each, by the sign of x2."""
    ticks = np.linspace(-reach, reach, steps)
    x = torch.tensor(np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2), dtype=torch.float32)
    return ticks, x, (x[:, 1] < 0).long()
