"""The linear models and the rules without a network: held against the theory, and by hand."""

import numpy as np
import pytest

from lgfed_core.papers.lgfedavg.mood import linear, texts


@pytest.mark.parametrize("rho", linear.RHOS.values())
def test_the_mixture_errs_as_the_theory_says_and_least_where_it_says(rho):
    best = 1 - linear.predicted(rho).best_weight
    grid = np.array([0.0, 0.5, 1.0, best])  # of the global model
    found, due = linear.errors(rho, grid, range(12)), linear.predicted(rho).error(1 - grid)
    assert (abs(found.mean(0) - due) < 4 * found.std(0, ddof=1) / np.sqrt(12)).all()
    assert found.mean(0)[3] <= found.mean(0)[:3].min() * 1.01


def test_the_best_mixture_is_found_and_the_teacher_is_the_best_model():
    found = linear.table(range(8))
    assert list(found.index) == [*linear.TITLES.values()]
    assert (np.diff(found["measured"]) < 0).all() and found["measured"].iloc[0] > 0.95  # alike
    assert (found["error mixture"] <= found[["error local only", "error global"]].min(axis=1)).all()
    others = found[[f"accuracy {name}" for name in ("local only", "global", "mixture")]]
    assert (found["accuracy teacher"] > others.max(axis=1)).all()
    away = (found["measured"] - found["best global weight, predicted"]).abs()  # as the page says
    assert away.max() < 0.06 and found["measured"].iloc[-1] < 0.1


def test_rules_without_a_network_know_what_they_are_given():
    """Ann says "up" for 4 and "down" for 0, Ben says nothing of his mood, which is mostly 3."""
    many = 40
    ann = [(("up",), 4) if i % 2 else (("down",), 0) for i in range(many)]
    ben = [(("hm", "so"), 3)] * many
    words, label = zip(*ann, *ben, strict=True)
    two = texts.Texts("two", np.repeat(["ann", "ben"], many), words, np.array(label))
    found = linear.alone(two, range(2)).mean()
    assert found["commonest label"] == 50 and found["the person's commonest"] < 100
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
