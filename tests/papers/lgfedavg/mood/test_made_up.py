"""Made-up texts: least squares on them errs as the theory says."""

import numpy as np
import pytest

from lgfed_core.papers.lgfedavg.mood import made_up, texts


@pytest.mark.parametrize("rho", made_up.RHOS.values())
def test_the_mixture_errs_as_the_theory_says_and_least_where_it_says(rho):
    best = 1 - made_up.predicted(rho).best_weight
    grid = np.array([0.0, 0.5, 1.0, best])  # of the global model
    found = []
    for seed in range(12):
        made = made_up.made_up(rho, seed)
        part = texts.split(made.texts, seed).train
        own = [part.of(k).numpy() for k in range(len(part))]
        fits = [np.linalg.lstsq(made.x[r], made.score[r])[0] for r in (*own, np.concatenate(own))]
        local, shared = np.stack(fits[:-1]), fits[-1]
        mixed = (1 - grid[:, None, None]) * local + grid[:, None, None] * shared
        found.append(((mixed - made.teachers) ** 2).sum(-1).mean(-1))
    found, due = np.stack(found), made_up.predicted(rho).error(1 - grid)
    assert (abs(found.mean(0) - due) < 4 * found.std(0, ddof=1) / np.sqrt(12)).all()
    assert found.mean(0)[3] <= found.mean(0)[:3].min() * 1.01


def test_made_up_texts_are_what_the_theory_speaks_of():
    made = made_up.made_up(1.0, seed=0, persons=40, each=50)
    second = made.x.T @ made.x / len(made.x)
    assert second == pytest.approx(np.eye(made_up.FEATURES), abs=0.15)
    counts = np.bincount(made.texts.label, minlength=5) / len(made.texts)
    assert counts == pytest.approx(np.full(5, 0.2), abs=0.05)
    noise = made.score - (made.x * made.teachers[made.texts.person]).sum(1)
    assert noise.std() == pytest.approx(made_up.SIGMA, abs=0.05)
    own = made.teachers - made.teachers.mean(0)
    assert own.std() == pytest.approx(1.0, abs=0.15)
    alike = made_up.made_up(0.0, 0).teachers
    assert (alike == alike[0]).all()
    words = texts.vocabulary(made.texts, 24)
    ids = words.encoded(made.texts.words, 24).long()
    x = words.vectors[ids - 2].sum(1) / made_up.PER_TEXT**0.5
    assert x.numpy() == pytest.approx(made.x, abs=1e-4)  # what the network begins with
