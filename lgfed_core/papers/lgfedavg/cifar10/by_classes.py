"""Figure 2c of LG-FedAvg (v2): accuracy on devices' own classes against how alike devices are."""

import pandas as pd

from lgfed_core.evidence import verdict

from ..comparisons import CLASSES, FULL, LOCAL, READINGS, SOUND, Read, lg, printed
from ..stored import by_seed

BUDGET = 1800  # FedAvg rounds before LG-FedAvg's


def accuracies(stored: pd.DataFrame) -> pd.DataFrame:
    """CIFAR-10, local test of FedAvg, local only and LG-FedAvg at each number of classes, percent.

    stored: rows of `records.load`; as described, chosen on validation rows. One line per method and
    number of classes: mean, low, high (95 %), seeds (0: not run, mean NaN), and paper, the printed
    mean.
    """
    read, lines = Read(by_seed(stored), READINGS[SOUND]), []
    for who in (FULL["cifar10"], LOCAL, lg(BUDGET)):
        for classes in CLASSES:
            mine = read.local("cifar10", classes, who)
            found = verdict.greater(mine.to_numpy())
            line = {"mean": found.estimate, "low": found.low, "high": found.high}
            paper = printed("cifar10", classes)[who, "local_test_acc"]
            ids = {"method": who[0], "classes": classes, "paper": paper}
            lines.append(ids | line | {"seeds": len(mine)})
    return pd.DataFrame(lines)
