"""How many parameters a federated run sends: the paper's convention, and a deployed system's.

Symbols: P parameters in the network, P_g of them shared in the LG phase, K devices, m of them
in a round, R_fed rounds of FedAvg followed by R_lg rounds of LG-FedAvg.

* The papers' numbers follow from (P R_fed + P_g R_lg) (m + K): m uploads, and *every* device
  downloads the new global part in every round. The papers do not state this; it is what
  reproduces all rows of LG-FedAvg's tables but two (`recompute_tables`).
* A deployed server sends the global part to the m participants only: (P R_fed + P_g R_lg) 2 m,
  and each device, one time, what it needs to end with a model of its own.

Source: Liang et al. (2019, v1) Tables 1 and 2; (2020, v2) Tables 1, 2, 6 and 8.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lgfed_core import require
from lgfed_core.errors import ResultsError
from lgfed_core.evidence.printed import row_name
from lgfed_core.paths import PAPER

BYTES = 4  # of a parameter sent as float32


@dataclass(frozen=True)
class System:
    """A network and its federation, in the symbols above.

    Raises SettingsError for numbers that contradict each other, as P_g > P or m > K. What happens
    once, and not in each round, is in none of the counts.
    """

    shared: int  # P_g
    total: int  # P
    m: int
    K: int

    def __post_init__(self):
        require.whole(**vars(self))
        require.at_least(1, m=self.m)
        require.at_most(self.total, shared=self.shared)
        require.at_most(self.K, m=self.m)

    def papers(self, fed_rounds: int, lg_rounds: int) -> int:
        """Parameters sent by the papers' convention: m uploads and K downloads in each round."""
        return (self.m + self.K) * self._per_direction(fed_rounds, lg_rounds)

    def deployed(self, fed_rounds: int, lg_rounds: int) -> int:
        """Parameters a deployed system sends: m uploads and m downloads in each round."""
        return 2 * self.m * self._per_direction(fed_rounds, lg_rounds)

    def _per_direction(self, fed_rounds: int, lg_rounds: int) -> int:
        """Parameters over all rounds for one upload (or one download) per round."""
        return self.total * fed_rounds + self.shared * lg_rounds


SYSTEMS = {
    "mnist": System(shared=99_978, total=633_226, m=10, K=100),  # models.mlp_mnist
    "cifar10": System(shared=2_872, total=64_102, m=10, K=100),  # models.cnn_cifar
    "vqa": System(shared=5_149_200, total=54_042_572, m=5, K=50),  # v2, C.2.3; not rebuilt here
}


def by_formula(dataset: str, method: str, fed_rounds: int, lg_rounds: int) -> int | None:
    """What a row of the tables sends by `System.papers`: it follows from the budget, without a run.

    None for MTL, which shares no part: `recompute_tables` counts it as FedAvg, for comparison.
    Raises ResultsError for rounds that a method does not have.
    """
    has = {"fedavg": (1, 0), "lg_fedavg": (1, 1), "local_only": (0, 0), "mtl": (1, 0)}
    if method not in has:
        raise ResultsError(f"method {method!r} is none of {', '.join(has)}")
    if any(n and not own for n, own in zip((fed_rounds, lg_rounds), has[method], strict=True)):
        raise ResultsError(
            f"{method} has no {fed_rounds} + {lg_rounds} rounds: models trained alone send nothing "
            "in any, and only LG-FedAvg has rounds that send a part"
        )
    return None if method == "mtl" else SYSTEMS[dataset].papers(fed_rounds, lg_rounds)


_TABLES = {  # table -> {data set: value of the last printed digit}
    "lgfedavg_v1_table1": {"mnist": 1e8, "cifar10": 1e7},  # 5.05 x 10^10, 13.04 x 10^9
    "lgfedavg_v2_table1_cifar10": {"cifar10": 1e8},  # 12.7 x 10^9
    "lgfedavg_table2_vqa": {"vqa": 1e8},  # 13.97 x 10^10
    "lgfedavg_v2_table6_mnist": {"mnist": 1e9},  # 5.6 x 10^10
    "lgfedavg_v2_table8_cifar10": {"cifar10": 1e8},  # 7.1 x 10^9
}


def recompute_tables(folder: Path = PAPER) -> pd.DataFrame:
    """Every printed number of communicated parameters in LG-FedAvg's tables, recomputed.

    Reads ``folder``/<table>.csv. One line per row of a table: table, dataset,
    classes_per_device (missing where the table has none), method, fedavg_rounds, lg_rounds, row
    (method and rounds in words), reported, digit (value of the last one printed), computed
    (`System.papers`), matches (equal in the digits printed).
    """
    lines = []
    for table, digits in _TABLES.items():
        for row in pd.read_csv(folder / f"{table}.csv").to_dict("records"):
            data = row.get("dataset", next(iter(digits)))
            rounds = {name: int(row[name]) for name in ("fedavg_rounds", "lg_rounds")}
            named, digit = {"method": row["method"]} | rounds, digits[data]
            reported, computed = row["params_communicated"], SYSTEMS[data].papers(*rounds.values())
            ids = dict(table=table, dataset=data, classes_per_device=row.get("classes_per_device"))
            found = dict(row=row_name(named), reported=reported, digit=digit, computed=computed)
            matches = round(computed / digit) == round(reported / digit)
            lines.append(ids | named | found | {"matches": matches})
    return pd.DataFrame(lines)
