"""The figures of the theory page: what is measured as black dots, what is printed dashed.

Each function draws one figure, from draws or from tables of `best_weight` and `minimax`, and
returns it.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgfed_core.colours import CORRECTED, FAINT, LAW, MEASURED, PALE, PRINTED
from lgfed_core.plotting import WIDTH, caption

from . import best_weight, closed_form as theory
from .closed_form import Problem
from .interpolation import Draws

LAWS = {"cube": "uniform on the cube", "normal": "normal", "sphere": "uniform on the sphere"}


def error_curves(draws: Draws) -> Figure:
    """Figures 2a, 2b and 4 (v2): test error against alpha, in all settings under both noises.

    Measured on test rows with 95 % intervals of the mean over draws, beside Theorem 2 as printed
    and corrected; stars mark the best weights. Raises SettingsError for draws without test rows.
    """
    figure, axes = plt.subplots(2, 4, figsize=(WIDTH + 0.9, 4.2), sharex=True)
    fine, grid = np.linspace(0, 1, 201), best_weight.GRID
    for ax, (_, sigma, rho) in zip(axes.flat, best_weight.settings(), strict=True):
        p = best_weight.problem(draws, rho, sigma)
        for terms, style, colour, label in (
            (theory.printed(p), "--", PRINTED, "Theorem 2 as printed"),
            (theory.corrected(p), "-", CORRECTED, "Theorem 2 corrected"),
        ):
            ax.plot(fine, sigma**2 + terms.error(fine), style, color=colour, label=label)
            star = dict(color=colour, markersize=9, markeredgecolor="white", markeredgewidth=0.6)
            ax.plot(terms.best_weight, sigma**2 + terms.best_error, "*", zorder=4, **star)
        found = best_weight.errors(draws, rho, sigma, grid, on="test")  # [D, A]
        mean, se = found.mean(0), found.std(0, ddof=1) / np.sqrt(len(draws))
        look = dict(color=MEASURED, markersize=3, elinewidth=1)
        label = f"measured, {len(draws)} draws"
        ax.errorbar(grid, mean, 1.96 * se, fmt="o", label=label, **look)
        figure_number = {0.1: " (2a)", 0.06: " (2b)"}.get(rho, "")
        ax.set_title(f"σ = {sigma:g}, ρ = {rho:g}{figure_number}", fontsize=8.5)
        ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        ax.tick_params(labelsize=7.5)
    figure.supxlabel("weight α of the local model", fontsize=9)
    figure.supylabel("test error", fontsize=9)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    below = (
        "Test error against the weight of the local model in every setting: measured "
        "with 95 % intervals over draws (live run), beside Theorem 2 as printed and "
        "as corrected."
    )
    return caption(figure, below)


def predicted_and_measured(table: pd.DataFrame) -> Figure:
    """Measured alpha* against Corollary 1, printed and corrected; table as of `best_weight.table`.

    Bars are two standard errors. Right: what is left between measured and corrected (with its next
    order), in standard errors; the grey band is two of them.
    """
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH + 0.9, 2.9))
    titles = (
        "Corollary 1 in the paper",
        "Corollary 1 corrected",
        "Corrected: distance in standard errors",
    )
    for ax, column, title in zip(axes, ("printed", "corrected", None), titles, strict=True):
        for law, lines in table.groupby("inputs", sort=False):
            (colour, marker), words = LAW[law], LAWS[law]
            label = f"x {words}, c = {lines['c'].iloc[0]:.3g}"
            look = {"fmt": marker, "color": colour, "label": label, "markersize": 5.5}
            look |= {"markeredgecolor": "white", "markeredgewidth": 0.6, "elinewidth": 1.2}
            if column:
                ax.errorbar(lines[column], lines["measured"], 2 * lines["se"], **look)
            else:
                ax.errorbar(lines["finite_sample"], lines["z"], **look)
        ax.set(title=title, xlabel="predicted best weight", xlim=(-0.04, 1.04))
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    for ax in axes[:2]:
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, zorder=0)
        ax.set(ylim=(-0.04, 1.04), ylabel="measured best weight")
        ax.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes[2].axhspan(-2, 2, color=PALE, zorder=0)
    reach = max(3.5, 1.1 * table["z"].abs().max())
    axes[2].set(ylim=(-reach, reach), ylabel="measured − predicted, in s.e.")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    below = (
        "Measured best weights against Corollary 1 in the paper and as corrected, and "
        "what is left; bars are two standard errors over draws, live run."
    )
    return caption(figure, below)


def few_rows(samples: Iterable[Draws], rho: float, sigma: float) -> Figure:
    """alpha* against the rows per device, for normal x; ``samples`` differ in their rows alone."""
    samples = sorted(samples, key=lambda draws: draws.rows)
    rows = [draws.rows for draws in samples]
    found = [best_weight.optimum(draws, rho, sigma) for draws in samples]
    fine = np.unique(np.geomspace(rows[0] - 4, rows[-1], 200).astype(int))
    law, devices = samples[0].inputs, samples[0].devices
    at = [Problem(rho, sigma, law, devices, int(N)) for N in fine]
    figure, ax = plt.subplots(figsize=(0.68 * WIDTH, 2.9))
    for label, value, style, colour in (
        ("as printed", theory.printed_weight, "--", PRINTED),
        ("corrected, leading order", theory.corrected_weight, ":", CORRECTED),
        ("corrected, exact", lambda p: theory.gaussian(p).best_weight, "-", CORRECTED),
    ):
        ax.plot(fine, [value(p) for p in at], style, color=colour, label=label)
    weights, reach = [f.weight for f in found], [2 * f.se for f in found]
    look = dict(fmt="o", color=MEASURED, markersize=4, label="measured")
    ax.errorbar(rows, weights, reach, **look)
    ax.set(xscale="log", xlabel="rows per device N", ylabel="best weight α*", ylim=(0, None))
    ax.minorticks_off()
    ax.set_xticks(rows, [f"{N:,}" for N in rows])
    ax.legend()
    below = (
        "The best weight against the rows of a device, measured (two standard errors "
        "over draws, live run) and by three formulas."
    )
    return caption(figure, below)


def pivotal_limits(by_reliance: pd.DataFrame, by_strength: pd.DataFrame) -> Figure:
    """Proposition 3's condition: how far from the bound, and what is left of P.

    Tables as of `minimax.sweep`, over the reliance on the proxy and over lambda.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8))
    looks = {"any": ("-", CORRECTED, "any encoder"), "function": ("--", PRINTED, "h = f(x)")}
    for name, (style, colour, words) in looks.items():
        lines = by_reliance[by_reliance["encoders"] == name]
        left.plot(lines["reliance"], lines["above"], style, color=colour, label=words)
        lines = by_strength[by_strength["encoders"] == name]
        some = lines[lines["information"] > 1e-12]
        right.loglog(some["strength"], some["information"], style, color=colour)
        if len(some) < len(lines):
            end = some[["strength", "information"]].iloc[-1]
            right.plot(*end, "o", color=colour, markerfacecolor="white")
            look = dict(textcoords="offset points", fontsize=8, color=colour)
            right.annotate("then 0", end, (7, -3), **look)
    left.set(xlabel="influence of the proxy on Y", ylabel="value above the bound, nats")
    right.set(xlabel="strength λ of the adversary", ylabel="I(H; P), nats")
    left.set_title("The bound is out of reach")
    right.set_title("What h still says about P")
    left.legend()
    below = (
        "How far the game stays above Proposition 3's bound by the influence of a "
        "proxy, and what h still says about P by strength; solved exactly."
    )
    return caption(figure, below)
