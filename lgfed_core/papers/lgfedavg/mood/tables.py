"""Tables of the page on mood: accuracies by share, what texts and persons say alone."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lgfed_core.evidence.display import mean_and_sd

from . import linear
from .claims import EXTREMES, chosen, sources, wide
from .settings import ALPHAS, Settings
from .stand_in_people import RHOS, SOURCES
from .texts import LABELS, Texts, split

COMMONEST = "commonest label"  # a rule that looks at no text
NAMES = {alpha: f"{alpha:g}" for alpha in ALPHAS} | {0.0: "0, local only", 1.0: "1, FedAvg"}


def by_alpha(
    rows: pd.DataFrame, lr: float = Settings.lr, selection: str = "best_val"
) -> pd.DataFrame:
    """Test accuracy of the run that is best on validation rows: mean ± deviation (seeds).

    rows: of `claims.stored`, or of a live run. selection: "last" for the last round instead. A line
    per source that has run, a column per alpha.
    """
    lines = {}
    for source in sources(rows):
        found = wide(rows, source, "test_acc", selection, lr)
        if len(found):
            lines[SOURCES.get(source, source)] = {
                NAMES[a]: mean_and_sd(found[a]) for a in ALPHAS if found[a].notna().any()
            }
    return pd.DataFrame(lines).T


def against_extremes(rows: pd.DataFrame) -> pd.DataFrame:
    """By source: the shares chosen on validation rows, and the share with the best mean on test
    rows, which says what the curve looks like and judges nothing; beside it what the theory expects
    of linear models on made-up texts (`expected`), and nothing of chats."""
    lines = {}
    for source, title in SOURCES.items():
        tested, own = wide(rows, source, "test_acc").mean(), chosen(rows, source)
        if len(own):
            lines[title] = {
                "chosen in between": ", ".join(f"{a:g}" for a in own["alpha"]),
                "its accuracy": own["test_acc"].mean(),
                "local only": tested[0.0],
                "FedAvg": tested[1.0],
                "best mean at": NAMES[float(tested.idxmax())],
                "the theory's best": expected(source),
            }
    return pd.DataFrame(lines).T


def expected(source: str) -> str:
    """Where the theory has its best mixture on made-up texts, with the weight of the global model
    there (`linear.predicted`): at the extreme that is the nearest alpha, or in between. "" of
    others."""
    if source not in RHOS:
        return ""
    weight = 1 - linear.predicted(RHOS[source]).best_weight
    near = min(ALPHAS, key=lambda alpha: abs(alpha - weight))
    return f"{EXTREMES.get(near, 'in between')} (weight {weight:.2f})"


def alone(texts: Texts, seeds: Sequence[int], most: int | None = None) -> pd.DataFrame:
    """Percent of test texts that simple rules get right: a line per split (seed), a column a rule.

    The commonest label of all training texts; the commonest of the person; and logistic regression
    on counts of words (the first ``most``; tf-idf), with and without who wrote them.
    """
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    documents = [text[:most] for text in texts.words]
    words = TfidfVectorizer(analyzer=list, min_df=2).fit_transform(documents)
    persons = OneHotEncoder().fit_transform(np.asarray(texts.person)[:, None])
    inputs = {"words": words, "words and person": hstack([words, persons]).tocsr()}
    found: dict[str, list[float]] = {}
    for seed in seeds:
        part = split(texts, seed)
        rows = [(part.train.of(k).numpy(), part.test.of(k).numpy()) for k in range(len(part))]
        train, test = (np.concatenate(some) for some in zip(*rows, strict=True))
        own = np.concatenate([np.full(len(b), _commonest(texts.label[a])) for a, b in rows])
        guesses = {
            COMMONEST: np.full(len(test), _commonest(texts.label[train])),
            "the person's commonest": own,
        }
        for name, x in inputs.items():
            model = LogisticRegression(C=3.0, max_iter=500).fit(x[train], texts.label[train])
            guesses[name] = model.predict(x[test])
        for name, guess in guesses.items():
            found.setdefault(name, []).append(100 * (guess == texts.label[test]).mean())
    return pd.DataFrame(found, index=pd.Index(seeds, name="seed"))


def _commonest(labels: np.ndarray) -> int:
    return int(np.bincount(labels, minlength=LABELS).argmax())
