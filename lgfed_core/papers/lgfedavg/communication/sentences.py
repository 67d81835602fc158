"""Sentences to take home from the page on accounting, each made from the counts; beside each what
would make it false."""

import pandas as pd

BUDGETS = (("mnist", 400, 800), ("cifar10", 1200, 1800))  # data set, FedAvg rounds of either method
_SAID = {"v1": (50, 60), "v2": (45, 55)}  # percent: "around 50 - 60 %", "around 50 %" (+- 5)


def of(counts: pd.DataFrame, ratio: pd.DataFrame) -> list[str]:
    """Four of them.

    counts: of `counts.recompute_tables`; ratio: of `audit.ratios`, in percent.
    """
    return [_convention(counts), _half(ratio), _saving(ratio), _once(ratio)]


def _convention(counts: pd.DataFrame) -> str:
    # False if another way to count gave the rows that do not follow, and the others as well.
    fit, m, K = int(counts["matches"].sum()), 10, 100
    return (
        f"**One convention explains {fit} of {len(counts)} counts**: m uploads and K downloads in "
        f"every round, which neither version writes down: {(m + K) / (2 * m):g} times what the "
        "participants alone would need, for both methods alike."
    )


def _half(ratio: pd.DataFrame) -> str:
    # False if a ratio by the formula lay on the other side of what its version says.
    said: dict[bool, list[str]] = {True: [], False: []}
    for name, value in ratio["formula"].items():
        low, high = _SAID[str(name)[:2]]
        said[low <= round(value) <= high].append(f"{name} ({value:.0f} %)")
    kept, broken = ("; ".join(names) or "none" for names in said.values())
    return (
        '**"Around 50 - 60 %" of FedAvg\'s parameters, says version 1, "around 50 %" version 2** '
        f"(to five percent): so it is for {kept}; not for {broken}."
    )


def _saving(ratio: pd.DataFrame) -> str:
    # False if the LG rounds were a large part of what is sent.
    more = (ratio["formula"] - ratio["rounds"]).max()
    return (
        "**The saving is in the FedAvg rounds not run**: an LG phase that sent nothing would save "
        f"at most {more:.1f} percent of FedAvg's parameters more."
    )


def _once(ratio: pd.DataFrame) -> str:
    # False if a transfer once per device mattered in a long run as it does in the short one.
    once = (ratio["deployed"] - ratio["formula"]).sort_values()
    return (
        "**What is sent once counts when rounds are few**: it adds "
        f"{once.iloc[0]:.1f} to {once.iloc[-2]:.1f} points to the other ratios, and "
        f"{once.iloc[-1]:.1f} to that of {once.index[-1]}."
    )
