"""The linear models and the rules without a network: held against the theory, and by hand."""

import numpy as np
import pytest

from lgfed_core.papers.lgfedavg.mood import linear, texts


@pytest.mark.parametrize("rho", linear.RHOS.values())
def test_the_mixture_errs_as_the_theory_says_and_least_where_it_says(rho):
    best = 1 - linear.predicted(rho).best_weight
    grid = np.array([0.0, 0.5, 1.0, best])  # of the global model
    found = []
    for seed in range(12):
        made = linear.made_up(rho, seed)
        local, shared = linear.fits(made, seed)
        mixed = (1 - grid[:, None, None]) * local + grid[:, None, None] * shared
        found.append(((mixed - made.teachers) ** 2).sum(-1).mean(-1))
    found, due = np.stack(found), linear.predicted(rho).error(1 - grid)
    assert (abs(found.mean(0) - due) < 4 * found.std(0, ddof=1) / np.sqrt(12)).all()
    assert found.mean(0)[3] <= found.mean(0)[:3].min() * 1.01


def test_the_teacher_is_the_best_model_and_alike_people_gain_by_the_global_one():
    alike, apart = (linear.accuracies(linear.RHOS[name], range(8)) for name in ("alike", "apart"))
    assert apart["teacher"] == apart.max() and apart["local only"] > apart["global"] + 10
    assert alike["global"] > alike["local only"] + 3


def test_rules_without_a_network_know_what_they_are_given():
    """Ann says "up" for 4 and "down" for 0, Ben says nothing of his mood, which is mostly 3."""
    many = 40
    ann = [(("up",), 4) if i % 2 else (("down",), 0) for i in range(many)]
    ben = [(("hm", "so"), 3)] * many
    words, label = zip(*ann, *ben, strict=True)
    two = texts.Texts("two", np.repeat(["ann", "ben"], many), words, np.array(label))
    found = linear.alone(two, range(2)).mean()
    assert found["commonest label"] == 50
    assert found["words"] == found["words and person"] == 100


def test_made_up_texts_are_what_the_theory_speaks_of():
    made = linear.made_up(1.0, seed=0, persons=40, each=50)
    second = made.x.T @ made.x / len(made.x)
    assert second == pytest.approx(np.eye(linear.FEATURES), abs=0.15)
    counts = np.bincount(made.texts.label, minlength=5) / len(made.texts)
    assert counts == pytest.approx(np.full(5, 0.2), abs=0.05)
    noise = made.score - (made.x * made.teachers[made.texts.person]).sum(1)
    assert noise.std() == pytest.approx(linear.SIGMA, abs=0.05)
    own = made.teachers - made.teachers.mean(0)
    assert own.std() == pytest.approx(1.0, abs=0.15)
    alike = linear.made_up(0.0, 0).teachers
    assert (alike == alike[0]).all()
    words = texts.vocabulary(made.texts, 24)
    ids = words.encoded(made.texts.words, 24).long()
    x = words.vectors[ids - 2].sum(1) / linear.PER_TEXT**0.5
    assert x.numpy() == pytest.approx(made.x, abs=1e-4)  # what the network begins with
