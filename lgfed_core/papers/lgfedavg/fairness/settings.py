"""Settings of the page on fair incomes: the paper's values (v1 Table 8, v2 Table 11)."""

from dataclasses import dataclass
from typing import ClassVar

from lgfed_core.errors import SettingsError
from lgfed_core.methods.fair import PLAYS
from lgfed_core.papers.settings import REST, Checked, Range

SPLITS = ("iid", "noniid")
METHODS = ("fedavg", "lg_fedavg", "lg_fedavg_adv")
POWERS = {"vanilla": 1.0, "squared": 2.0}
RATES = {"adam": 0.001, "sgd": 0.1}  # of the sweep's optimisers: the usual one, and the text's
ROWS = 30_940  # before the halves are cut,
FIRST_ROWS = 30_000  # for non-i.i.d. devices,
SHARDS = 10  # of which each has so many shards
FEW = dict(splits=("iid",), released_epochs=1)
SCALES = {
    "smoke": FEW
    | dict(frontier=(1.0,), sweep=(1.0,), first_rows=3000, probe_rows=600)
    | dict.fromkeys(("pretraining", "rounds", "fedavg_rounds", "fedavg_epochs", "probed"), 1)
    | dict.fromkeys(("released_rounds", "released_pretraining"), 1),
    "quick": FEW
    | dict(frontier=(0.3, 3.0), first_rows=8_000, probe_rows=3000)
    | dict.fromkeys(("pretraining", "rounds", "fedavg_rounds"), 3)
    | dict(fedavg_epochs=2, probed=2, released_rounds=3, released_pretraining=3),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """As described; released_* are of the paper's code."""

    splits: tuple[str, ...] = SPLITS
    methods: tuple[str, ...] = METHODS
    devices: int = 10
    batch_size: int = 32
    lr: float = 0.1
    momentum: float = 0.5
    dropout: float = 0.2
    head_layers: int = 3  # hidden layers of the shared head
    pretraining: int = 10  # epochs of local models and adversaries
    rounds: int = 10  # of the joint phase, an epoch each
    fedavg_rounds: int = 50
    fedavg_epochs: int = 10  # in each round
    play: str = "alternating"  # of Table 4's rows; the frontier plays by reversal
    strength: float | None = None  # both lambdas; None: `pick` it from the frontier of this run
    frontier: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)  # lambdas
    frontier_splits: tuple[str, ...] = ("iid",)
    losses: tuple[str, ...] = ("vanilla", "squared")  # of the adversary, on the frontier
    sweep: tuple[float, ...] = ()  # lambdas of a fair chance, beside 0: players in turn,
    sweep_optimiser: str = "adam"  # in the joint phase; its rate is in `RATES`
    adversary_steps: int = 5  # with each batch and game
    adversary_width: int = 32  # units of its hidden layers
    adversary_dropout: float | None = None  # of the sweep's; None: as `dropout`
    validation: float = 0.1  # share of each device's training rows
    probed: int = 3  # devices whose encoders are probed
    probe_rows: int = 5000  # half to fit, half to judge
    first_rows: int | None = None  # of the data, for a quick look; None: all the paper's
    released_rounds: int = 10
    released_epochs: int = 5  # the code's default
    released_pretraining: int = 10  # epochs for the classifier, then as many for the adversary

    RANGES: ClassVar = dict(adversary_dropout=REST, first_rows=Range(4, ROWS))
    CHOICES: ClassVar = dict(splits=SPLITS, frontier_splits=SPLITS, methods=METHODS, losses=POWERS)
    CHOICES |= dict(play=PLAYS, sweep_optimiser=RATES)
    EMPTY = frozenset({"methods", "frontier", "frontier_splits", "losses", "sweep"})

    def fits(self) -> None:
        super().fits()
        for split in self.splits:
            rows = (self.first_rows or (FIRST_ROWS if split == "noniid" else ROWS)) // 2
            if rows < (wanted := self.devices * (SHARDS if split == "noniid" else 1)):
                raise SettingsError(
                    f"devices is {self.devices}, splits has {split}: {wanted} shares of {rows} "
                    "training rows; use fewer devices, or more first_rows"
                )
        picks = self.strength is None and not self.released and "lg_fedavg_adv" in self.methods
        whole = self.scale != "paper" or {*Settings.frontier} <= {*self.frontier}
        there = "vanilla" in self.losses and self.splits[:1] == self.frontier_splits[:1]
        if picks and not (there and self.frontier and whole):
            raise SettingsError(
                f"strength is picked on the frontier of the first of splits, with losses=vanilla; "
                f"splits is {self.splits}, frontier_splits {self.frontier_splits}, losses "
                f"{self.losses}, frontier {self.frontier}: run it there, with "
                f"{', '.join(f'{one:g}' for one in Settings.frontier)} in the frontier, give a "
                "strength, or leave lg_fedavg_adv out of methods"
            )
