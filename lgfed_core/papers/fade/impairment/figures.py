"""The figure of the FADE chapter on impairment: Figure 3b of Hong et al. (2021)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import INK, LOSS
from lgfed_core.evidence.verdict import reach_of
from lgfed_core.plotting import WIDTH, caption

from .settings import Settings

WHO = {"train": "users trained with", "left": "users left out"}


def at_rate(lr: float) -> str:
    """A learning rate in words, with the text's beside another."""
    text = Settings.lrs[0]
    return f"learning rate {lr:g}" + (f" (the text's is {text:g})" if lr != text else "")


def figure3b(tables: dict[str, pd.DataFrame], lr: float) -> Figure:
    """Delta EO and F1 by users a round, of those trained with and of those left out.

    tables: "train_delta_eo", "train_f1", "left_delta_eo", "left_f1" -> lines (per_round, seed), a
    column per loss. lr: at which they ran. Bars are 95 % intervals over seeds.
    """
    fig, axes = plt.subplots(2, 2, figsize=(WIDTH, 4.2), sharex=True, sharey="row")
    for column, (who, title) in zip(axes.T, WHO.items(), strict=True):
        for ax, metric in zip(column, ("delta_eo", "f1"), strict=True):
            for loss in [x for x in LOSS if x in tables[f"{who}_{metric}"]]:
                by = tables[f"{who}_{metric}"][loss].groupby("per_round")
                n, colour = by.count(), LOSS[loss][0]
                reach = np.nan_to_num(reach_of(by.std() / np.sqrt(n), n - 1))
                marks = dict(color=colour, marker=LOSS[loss][1], capsize=2, label=loss)
                ax.errorbar(n.index, by.mean(), reach, **marks)
        column[0].set_title(title)
        column[0].axhline(0.2, color=INK, lw=0.8, ls=":")
        column[1].set_xlabel("users a round")
    axes[0, 0].set_ylabel("ΔEO (0 is fair)")
    axes[1, 0].set_ylabel("F1, % (higher is better)")
    axes[0, 0].legend()
    words = "Delta EO and F1 by the number of users in a round, of known users and of others, a "
    words += f"line per loss of D, at {at_rate(lr)}; bars are 95 % intervals, from stored runs on "
    words += "stand-in data."
    return caption(fig, words, *tables.values())


def by_round(curves: pd.DataFrame) -> Figure:
    """Convergence: delta EO and F1 of the users trained with, by round."""
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.5))
    for ax, metric in zip(axes, ("train_delta_eo", "train_f1"), strict=True):
        for loss in dict.fromkeys(curves["loss"]):
            mean = curves[curves["loss"] == loss].groupby("round")[metric].mean()
            colour = LOSS.get(loss, (INK, ""))[0]
            ax.plot(mean.index, mean, color=colour, label=loss)
        ax.set(xlabel="round", ylabel={"train_f1": "F1, %"}.get(metric, "ΔEO (0 is fair)"))
    axes[1].legend()
    rates = " and ".join(at_rate(lr) for lr in curves["lr"].unique())
    words = f"Delta EO and F1 by round, a line per loss of D, means over seeds, at {rates}."
    return caption(fig, words, curves)
