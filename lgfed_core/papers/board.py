"""Every claim of the papers in one table: what stored runs say of it, and the page to read on.

Claims are those of data/paper/claims.csv. A verdict is the one of the claim's own page, from runs
at paper scale and as described, after Holm's correction over the claims which that page judges.
"""

from pathlib import Path

import pandas as pd

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import records as results, verdict
from lgfed_core.evidence.printed import PAPERS
from lgfed_core.papers.cgau.audio import run as cgau_audio
from lgfed_core.papers.cgau.cifar10 import (
    claims as cgau_cifar10_claims,
    run as cgau_cifar10,
    time as cgau_time,
)
from lgfed_core.papers.fade.digits import claims as fade_digits_claims
from lgfed_core.papers.lgfedavg import claims as lgfedavg_claims
from lgfed_core.papers.lgfedavg.communication import counts as communication
from lgfed_core.papers.lgfedavg.comparisons import SOUND
from lgfed_core.papers.lgfedavg.fairness import claims as adult_claims
from lgfed_core.paths import PAPER

LIVE = "judged live on its page"
PAGES = {  # page of the book -> the claims it judges
    "lgfedavg/cifar10": ("L1", "L2", "L3", "L4", "L5", "L6", "L8", "L9"),
    "lgfedavg/mnist": ("L7",),
    "lgfedavg/theory": ("L10", "L11", "L20"),
    "lgfedavg/fairness": ("L14", "L15"),
    "lgfedavg/communication": ("L19",),
    "cgau/audio": ("C1", "C2"),
    "cgau/cifar10": ("C3", "C4", "C6", "C7", "C9"),
    "cgau/clients": ("C5",),
    "cgau/xor": ("C8",),
    "fade/digits": ("F1", "F2", "F3", "F14"),
    "fade/theory": ("F4", "F5", "F15"),
}
SEEN = {"L10", "L11", "L20", "C8", "F4", "F5", "F15"}  # whose evidence is made where it is shown


def board(paper: Path = PAPER) -> pd.DataFrame:
    """Columns paper, claim (in words), verdict and page ("" where no page does it yet), by id.

    Raises ResultsError where the list of claims is missing.
    """
    path = paper / "claims.csv"
    if not path.exists():
        raise ResultsError(f"{path} is missing; it holds the papers' claims and is part of git")
    out = pd.read_csv(path, index_col="id")[["paper", "claim"]]
    found = _lgfedavg() | _cgau() | _fade() | dict.fromkeys(SEEN, LIVE)
    page = {claim: name for name, claims in PAGES.items() for claim in claims}
    return out.assign(
        paper=out["paper"].map(PAPERS),
        verdict=[found.get(claim, verdict.NOT_RUN) for claim in out.index],
        page=[page.get(claim, "") for claim in out.index],
    )


def markdown(table: pd.DataFrame) -> str:
    """``table`` of `board` as Markdown; each verdict links to the claim's page."""
    lines = ["| | claim | verdict |", "|---|---|---|"]
    for claim, row in table.iterrows():
        said = f"[{row['verdict']}]({row['page']}.ipynb)" if row["page"] else row["verdict"]
        lines.append(f"| {claim} | {row['claim']} | {said} |")
    return "\n".join(lines)


def _lgfedavg() -> dict[str, str]:
    lines = lgfedavg_claims.judged(results.load()).xs(SOUND, level="reading")
    found = {}
    for line in lines.itertuples():
        part = f"{line.so_far} so far, {line.ran} of {line.parts} comparisons"
        part += ", one seed" * (line.runs == 1)
        whole = not line.ran or lgfedavg_claims.settled(line)
        found[line.Index] = line.verdict if whole else part
    fair = adult_claims.judged(adult_claims.stored_rows())["verdict"]
    found |= {
        claim: fair[fair.index.str.startswith(f"{claim}:")].iloc[0]
        for claim in PAGES["lgfedavg/fairness"]
    }
    return found | _verdicts(verdict.judge({"L19": communication.claim_l19()}))


def _cgau() -> dict[str, str]:
    """Claims of Figure 2 are about the rows kept on the device; C5 is about both data sets."""
    cifar = cgau_cifar10_claims.verdicts(
        cgau_cifar10.stored(), cgau_cifar10.stored("cifar_cnn"), cgau_time.stored()
    )
    cifar, audio = _verdicts(cifar), _verdicts(cgau_audio.verdicts(cgau_audio.stored()))
    both = {"audio": audio.get("C5"), "CIFAR-10": cifar.get("C5")}
    if any(both.values()):
        said = [f"{found or verdict.NOT_RUN} ({name})" for name, found in both.items()]
        audio["C5"] = "; ".join(said)
    return cifar | audio


def _fade() -> dict[str, str]:
    return _verdicts(fade_digits_claims.verdicts(fade_digits_claims.stored()))


def _verdicts(judged: pd.DataFrame) -> dict[str, str]:
    return judged["verdict"].to_dict()
