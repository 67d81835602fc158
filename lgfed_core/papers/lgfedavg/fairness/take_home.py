"""The sentences to take home from the fairness page, written from rows; beside each what would make
it false."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.papers.in_words import bullets, kind

from . import best_bit
from .claims import margin, paired_gain
from .stored import Tried, cell, frontier, sweep, tried

_PLACES = ("above", "below", "not shown to be above or below")
_LEVEL = 51.0  # the mean leak at which the best bit is quoted, in percent


def take_home(stored: pd.DataFrame, label: float, bits: pd.DataFrame) -> str:
    """Sentences with the stored runs' numbers, in Markdown; says so where runs are missing.

    label: what the true label alone leaks, mean over race and sex, in percent; bits: of
    `best_bit.best_bits`.
    """
    adv, line = "lg_fedavg_adv", frontier(stored)
    if line.empty or pd.isna([v for found in _released(stored) for v in found]).any():
        return "**Not yet run**: the sentences to take home appear with the stored runs."
    means = line.loc["vanilla"].xs("mean", axis=1, level=1)
    lines = [published(stored), _text(means)]
    lines += [_swept(stored, way) for way in sweep(stored)]
    leak, reached = (_cell(stored, m, adv, "as_described") for m in ("probe_best", "class_acc"))
    lines.append(_bit(bits, label, leak, reached))
    head = "To take home (i.i.d. devices, means over seeds):"
    return "\n".join([f"{head}\n", *(f"- {words}" for words in lines)])


def settings(stored: pd.DataFrame) -> str:
    """The settings that were tried before a verdict, in Markdown; says so where none was."""
    ways = tried(stored)
    # False if a way of the sweep, or a lambda, had run that is not in the list.
    lines = (f"{how}: lambda {', '.join(f'{x:g}' for x in lambdas)}" for how, lambdas in ways)
    many = sum(len(lambdas) for _, lambdas in ways)
    return f"The {many} settings tried:\n\n{bullets(lines)}" if ways else "No setting tried yet."


def _released(stored: pd.DataFrame) -> list[list[float]]:
    """As released, with the adversarial term and without: the adversary's AUC, the best probe's."""
    judges = ("adv_auc", "probe_best")
    methods = ("lg_fedavg_adv", "lg_fedavg")
    return [[_cell(stored, j, m, "as_released") for j in judges] for m in methods]


def published(stored: pd.DataFrame) -> str:
    """What the paper's 50 % says of the representation, as a sentence of the stored runs."""
    on, off = _released(stored)
    if pd.isna([*on, *off]).any():
        return "**The published 50 %** is not yet judged: not all methods have run as released."
    # False if the adversary's AUC without the adversarial term were away from that with it, or if
    # fresh probes came near 50 as released.
    within = margin("adv_auc", "iid")
    tells = abs(on[0] - off[0]) > within or on[1] < 50 + within
    return (
        f"**The published 50 % says {'something' if tells else 'nothing'} about the "
        f"representation.** As released, the adversary's AUC is {on[0]:.1f} with the adversarial "
        f"term and {off[0]:.1f} without it; fresh probes find race and sex at {on[1]:.1f} and "
        f"{off[1]:.1f}."
    )


def _text(means: pd.DataFrame) -> str:
    # False if some lambda on this line left fresh probes within the margin of 50, or if another
    # optimiser did: then it is the optimiser's doing. Hence its name, and the sentences after it.
    weak, strong = means.iloc[0], means.iloc[-1]  # lambda = 0, and the largest
    least, at = means["probe_best"].min(), means["probe_best"].idxmin()
    return (
        "**With the text's optimiser** (SGD, one step of each player, dropout in the adversary): "
        f"as lambda goes from 0 to {means.index[-1]:g}, the adversary of the game "
        f"{_goes(weak['adv_auc'], strong['adv_auc'])}, for "
        f"{weak['class_acc'] - strong['class_acc']:.1f} points of accuracy, while the best fresh "
        f"probe {_goes(weak['probe_best'], strong['probe_best'])}; the least that any of these "
        f"lambdas leaves is {least:.1f}, at {at:g}."
    )


def _swept(stored: pd.DataFrame, way: Tried) -> str:
    # False if the paired interval of what the probe finds more, or of accuracy, came to hold zero,
    # to leave it, or to lie on the other side.
    leaks, gain = (paired_gain(way, stored, m) for m in ("probe_best", "class_acc"))
    head = kind(leaks, ("shows more", "forgets a part", "is not shown to forget"))
    leak, judge = (way.values(stored, m).mean() for m in ("probe_best", "adv_auc"))
    lambdas = ", ".join(f"{x:g}" for x in way.lambdas)
    return (
        f"**With another optimiser a local model {head}** ({way.how}, lambda {lambdas}; "
        f"{way.strength:g} chosen on validation rows): the best fresh probe is at {leak:.1f}, "
        f"{kind(leaks, _PLACES)} that without an adversary: {said(leaks, digits=1)}; accuracy, "
        f"{kind(gain, _PLACES)}: {said(gain, digits=1)} points. The adversary of the game is at "
        f"{judge:.1f}."
    )


def _bit(bits: pd.DataFrame, label: float, leak: float, reached: float) -> str:
    # False if the bit were less right, or leaked more, than the table of the line says: both are
    # computed on test rows. That the label binds no prediction with errors is arithmetic.
    best, free = bits.loc[_LEVEL], bits["accuracy"].iloc[-1]
    words = (
        f"**Chance is within {max(best['race'], best['sex']) - 50:.1f} points of a code that tells "
        f"incomes well.** One bit of the inputs, right in {best['accuracy']:.1f} % "
        f"({free - best['accuracy']:.1f} points below the best bit without a bound), has an AUC of "
        f"{best['race']:.1f} for race and {best['sex']:.1f} for sex. The {label:.1f} that the true "
        "label tells binds only a prediction without error."
    )
    if pd.isna(leak):
        return words
    return words + (
        f" Table 4's LG-FedAvg with an adversary leaks {leak:.1f} and is right in {reached:.1f} %; "
        f"a bit that leaks no more reaches {best_bit.at_leak(bits, leak):.1f} %."
    )


def _cell(stored: pd.DataFrame, metric: str, method: str, protocol: str) -> float:
    return cell(stored, metric, method, "iid", protocol).mean()


def _goes(before: float, after: float) -> str:
    way = "falls" if after < before else "rises"
    return f"{way} from {before:.1f} to {after:.1f}"
