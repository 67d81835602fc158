"""What the page on the theory takes home, from its live run; beside each what would make it
false."""

import pandas as pd

_BESIDE = "L11, with the corrected weight"


def of(verdicts: pd.Series, weights: pd.DataFrame, gain: pd.Series, leak: float) -> str:
    """Three paragraphs in Markdown.

    verdicts: of the claims and those beside them, by id. weights: of `best_weight.table`; gain: of
    `best_weight.extremes`, percent. leak: I(H;P) in nats where X = Y = P, at every solution.
    """
    return "\n\n".join(
        [_mixture(verdicts["L10"], gain), _weight(verdicts, weights), _fair(verdicts["L20"], leak)]
    )


def captions(extremes: pd.DataFrame) -> str:
    """Where caption and printed formula name the wrong model; of `best_weight.extremes`."""
    lines = []
    for column, who in (("printed", "the printed formula"), ("caption", "the captions")):
        told = extremes[extremes["measured"] != "tie"]
        wrong = told[told[column] != told["measured"]]
        where = ", ".join(f"σ = {x.sigma:g} and ρ = {x.rho:g}" for x in wrong.itertuples())
        # False if the paired interval of local less global lay on the other side of zero there.
        lines.append(f"{who} in {len(wrong)} of {len(told)}{f' ({where})' * bool(where)}")
    ties = int((extremes["measured"] == "tie").sum())
    return f"**The worse model is called the better** by {'; by '.join(lines)}; ties: {ties}."


def _mixture(verdict: str, gain: pd.Series) -> str:
    # False if the mixture at the weight fixed beforehand lost to an extreme in some setting.
    return (
        f"**L10 {verdict}.** With the weight fixed beforehand, the mixture's error above σ² is "
        f"{gain.min():.0f} to {gain.max():.0f} % less than that of the better extreme."
    )


def _weight(verdicts: pd.Series, weights: pd.DataFrame) -> str:
    off = (weights["measured"] - weights["printed"]).abs()
    at, off_sphere = weights.loc[off.idxmax()], weights["inputs"] != "sphere"
    times = (off / weights["se"])[off_sphere].min()
    # False, of the printed weight, if it lay within a few standard errors off the sphere; of the
    # corrected one, if some |z| were beyond what so many settings give by chance.
    return (
        f"**L11 {verdicts['L11']}.** The printed weight is off by up to {off.max():.2f} "
        f"({at['inputs']} $x$, σ = {at['sigma']:g}, ρ = {at['rho']:g}), and off the sphere by "
        f"{times:.0f} standard errors or more. The corrected one is {verdicts[_BESIDE]}: |z| at "
        f"most {weights['z'].abs().max():.2f} in {len(weights)} settings."
    )


def _fair(verdict: str, leak: float) -> str:
    # False if the certified solution of this one case had I(H;P) = 0.
    return (
        f"**L20 {verdict}** as stated: when X = Y = P, every minimax solution has I(H;P) = "
        f"{leak:.4f} nats. The proposition itself presumes that the bound is attained; whether it "
        "is, is decided by the condition above."
    )
