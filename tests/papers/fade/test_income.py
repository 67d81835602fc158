"""The census as FADE's users hold it, what the sweep turns, and what stored runs say."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lgfed_core import models
from lgfed_core.data import Split
from lgfed_core.engine import LocalTraining, run
from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.methods import FADE
from lgfed_core.models.income import IncomeNet
from lgfed_core.papers.fade.income import census, claims, measures, run as income
from lgfed_core.papers.fade.income.census import Tuning
from lgfed_core.papers.fade.income.measures import scores
from lgfed_core.papers.fade.income.run import INCOME
from lgfed_core.papers.fade.income.stronger_game import Game


def test_the_census_has_the_rows_and_inputs_of_the_released_code():
    for inputs, columns, sexes in (("with_sex", 110, True), ("without_sex", 102, False)):
        rows = census.census(inputs).train
        assert rows.x.shape == (45_222, columns)
        assert rows.groups.shape == (45_222, 1) and int(rows.groups.sum()) == 30_527
        assert rows.x.mean(0).abs().max() < 1e-4
        male = rows.groups[:, 0].float()
        told = any(torch.corrcoef(torch.stack([x, male]))[0, 1] > 0.999 for x in rows.x.T)
        assert told == sexes
    with pytest.raises(SettingsError, match="none of with_sex, without_sex"):
        census.census("no_sex")


def people(women: int, men: int) -> Split:
    sex = torch.tensor([0] * women + [1] * men)[:, None]
    return Split(torch.zeros(women + men, 3), torch.arange(women + men) % 2, sex)


def test_women_are_one_user_and_men_are_shared_out_whatever_their_number():
    rows = people(100, 200)
    few, many = (census.users(rows, m, 0, 5, 0.1, 0.2) for m in (2, 5))
    for part, males in ((few, 2), (many, 5)):
        kinds = [part.train, part.validation, part.test]
        held = [torch.cat([k.of(i) for k in kinds]) for i in range(6)]
        assert torch.cat(held).sort().values.equal(torch.arange(300))  # all rows, each once
        assert (held[0] < 100).all() and all((h >= 100).all() for h in held[1:])
        assert [len(h) > 0 for h in held] == [i <= males for i in range(6)]
        assert len(set(map(len, held[1 : 1 + males]))) <= 3
    tested = [torch.cat([p.test.of(i) for i in range(6)]).sort().values for p in (few, many)]
    assert tested[0].equal(tested[1]) and len(tested[0]) == 30
    for men, what in ((2, "test"), (9, "validation")):  # a tenth of 3 rows is none, nor is it of 1
        with pytest.raises(SettingsError, match=f"{what} rows: none of {1 + men}, .* first_rows"):
            census.users(people(1, men), men, 0, men, 0.1, 0.2)


def test_the_network_has_the_released_sizes():
    net = IncomeNet()
    parts = [models.count(part) for part in (net.encoder, net.classifier, net.discriminator)]
    assert parts == [17_564, 2_146, 2_113]


@pytest.fixture
def small(monkeypatch):
    """Random rows in the place of the census, and settings of a short run."""
    rng = torch.Generator().manual_seed(0)
    rows = replace(people(120, 180), x=torch.randn(300, 6, generator=rng))
    data = census.Dataset("made up", rows, rows, classes=2)
    monkeypatch.setattr(census, "census", lambda *args: data)
    return INCOME.settings("smoke", dropout=0.0)


def ended(cfg, method) -> dict[str, torch.Tensor]:
    fed, start = income.Parts(cfg, "with_sex", [0]).federation([1])
    out = run(fed, method, LocalTraining(0.1, 16, 0.5, batches=1), 3, start, workers=1)
    return out.layout.views(out.tensors["shared"][0], out.tensors["personal"][0, 0])


def test_the_game_is_fade_and_own_steps_move_the_discriminator_alone(small):
    usual = dict(power=2.0, rounds=3, beta=0.5)
    plain, same = ended(small, FADE(**usual)), ended(small, Game(**usual))
    assert all(plain[n].equal(same[n]) for n in plain)
    idle, busy = (ended(small, Game(top=0.0, own_steps=k, **usual)) for k in (0, 3))
    moved = {n.split(".")[0] for n in idle if not idle[n].equal(busy[n])}
    assert moved == {"discriminator"}
    strong = Game(top=3.0, **usual)
    assert strong.strength_at(2) == pytest.approx(3 * FADE(**usual).strength_at(2))


def test_users_that_hold_nothing_are_never_drawn(small):
    fed, _ = income.Parts(small, "with_sex", [0]).federation([1, 2])
    there = fed.participation.availability
    sizes = torch.stack([p.train.size for p in fed.partitions])
    assert fed.participation.cohort(fed.clients) == small.per_round
    assert ((there > 0) == (sizes > 0)).all() and there.sum(1).allclose(torch.ones(2).double())


def test_scores_by_hand():
    rows = replace(people(4, 4), y=torch.tensor([1, 0, 0, 1, 0, 1, 1, 0]))
    guessed = np.array([0.1, 0.2, 0.1, 0.2, 0.9, 0.8, 0.9, 0.8])
    said = [4, 0, 2, 2], np.array([1, 0, 1, 0, 0, 1, 1, 0]), guessed  # the second has no row
    found = scores(rows, *said)
    assert found["delta_eo"] == 1.0  # both error rates are a half for women, none for men
    assert (found["acc"], found["acc_female"], found["acc_male"]) == (75, 50, 100)
    assert (found["user_worst"], found["user_gap"], found["adv_auc"]) == (50, 50, 100)
    assert found["user_decile"] == pytest.approx(60)
    with pytest.warns(RuntimeWarning, match="class 0 of group 1"):
        none = scores(replace(rows, y=torch.tensor([1, 0, 0, 1, 1, 1, 1, 1])), *said)
    assert np.isnan(none["delta_eo"]) and none["acc"] > 0
    with pytest.warns(RuntimeWarning, match="of group 0"):
        men = scores(replace(rows, groups=torch.ones(8, 1, dtype=torch.long)), *said)
    assert np.isnan([men["parity"], men["acc_female"]]).all() and men["acc"] == 75


def made_up(slope=0.03, many=-0.1, one=0.1, cost=0.2) -> pd.DataFrame:
    """Rows in which F10 to F12 hold: the gap grows, squared is better with 16, vanilla with 1.

    The tuning 3_0.01_0 of the squared loss has the least gap of all on test rows, and not on
    validation rows; that of the vanilla loss has it on both, and costs too much.
    """
    rng, lines = np.random.default_rng(0), []

    def add(loss, males, gap, acc, tuning=None, validation=None, dearer=0.0):
        for seed in range(5):
            noise = rng.normal(0, 0.004, 2)
            base = dict(loss=loss, males=males, seed=seed)
            base |= dict(table=income.SWEEP, **tuning._asdict()) if tuning else {}
            values = {"delta_eo": gap + noise[0], "acc": acc + noise[1]}
            values["validation_delta_eo"] = gap if validation is None else validation
            values["validation_acc"] = acc - dearer
            for metric, value in values.items():
                lines.append(dict(table=income.TABLE) | base | dict(metric=metric, value=value))

    for males in (1, 4, 16):
        add("none", males, 0.3 + slope * np.log2(males), 84.0)
        add("vanilla", males, 0.2, 84.0 - cost)
        add("squared", males, 0.2 + (one if males == 1 else many if males == 16 else 0), 83.9)
    for males in (1, 16):
        add("squared", males, 0.01, 83.9, Tuning(3), validation=0.9)
        add("vanilla", males, 0.01, 84.0, Tuning(10), dearer=1.5)
    return pd.DataFrame(lines).assign(rounds=8000, inputs="with_sex", q=np.nan, method="")


def test_without_fairlearn_the_parts_that_need_none_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fairlearn.postprocessing", None)
    with pytest.raises(LgfedError, match="parts=figure,between,sweep,qffl$") as refused:
        measures.central(INCOME.settings("smoke"), "with_sex", [0])
    parts = str(refused.value).rpartition("parts=")[2].split(",")
    assert "central" not in INCOME.settings("smoke", parts=tuple(parts)).names()


@pytest.mark.parametrize(
    "rows, said",
    [
        (made_up(), dict.fromkeys(("F10", "F11", "F12"), "confirmed")),
        (made_up(slope=-0.03), {"F10": "refuted"}),
        (made_up(many=0.1), {"F11": "refuted"}),
        (made_up(one=-0.1), {"F11": "refuted"}),
        (made_up(cost=-4.0), {"F12": "refuted"}),
        (made_up()[lambda rows: rows["loss"] == "none"], {"F11": None, "F12": None}),
        (pd.DataFrame(columns=made_up().columns), {"F10": None}),
    ],
)
def test_claims_that_hold_are_confirmed_and_others_refuted_or_not_judged(rows, said):
    found = claims.judged(rows)["said"]
    assert {claim: found.get(claim) for claim in said} == said
    assert (claims.chosen(rows) == []) == (None in said.values())


def test_of_a_seed_whose_runs_diverge_the_others_stay(small, monkeypatch):
    real = income.Game.loss

    def broken(self, local, batch):
        return real(self, local, batch) * (float("nan") if self.top == 0 else 1)

    monkeypatch.setattr(income.Game, "loss", broken)
    cfg = replace(small, parts=("figure",), probed=20)
    with pytest.warns(RuntimeWarning, match="not finite"):
        rows, _ = INCOME.run(cfg, [0, 1], record=False, resume=False)
    lost = rows[rows["loss"] == "none"]
    assert set(lost["metric"]) == {"diverged"} and set(lost["value"]) == {1}
    kept = rows[rows["loss"] == "squared"]
    assert "diverged" not in set(kept["metric"]) and set(kept["seed"]) == {0, 1}


@pytest.mark.parametrize("large", [1e30, 1e10])  # squared by two layers: infinite, and too large
def test_a_run_with_finite_weights_whose_representation_overflows_has_a_round_alone(
    small, monkeypatch, large
):
    real = measures.models

    def grown(outcome, runs):
        for r, params in enumerate(real(outcome, runs)):
            by = large if r == 0 else 1.0
            yield {n: v * by if n.startswith("encoder") else v for n, v in params.items()}

    monkeypatch.setattr(measures, "models", grown)
    cfg = replace(small, parts=("figure",), probed=20)
    rows, _ = INCOME.run(cfg, [0], record=False, resume=False)
    lost = rows[rows["metric"] == "diverged"]
    assert len(lost) == 1 and lost["value"].item() == cfg.rounds
    own = (rows["loss"] == lost["loss"].item()) & (rows["males"] == lost["males"].item())
    assert own.sum() == 1 and "probe_best" in set(rows.loc[~own, "metric"])


def test_validation_rows_choose_within_a_point_of_accuracy():
    usual = str(Tuning())
    dear = made_up()
    assert "within 1 point" in claims.judged(dear).loc["F12", "words"]
    assert {c.tuning for c in claims.chosen(made_up())} == {usual}
    rows = made_up()
    rows.loc[rows["metric"] == "validation_acc", "value"] = 84.0
    best = {(c.loss, c.males): c.tuning for c in claims.chosen(rows)}
    assert best["vanilla", 16] == str(Tuning(10)) and best["squared", 16] == usual
    end = (rows["metric"] == "acc") & (rows["loss"] == "vanilla") & (rows["males"] == 16)
    one = rows[end & (rows.get("top") == 10)].head(1)  # a seed of the one that was best is lost
    with_loss = pd.concat([rows, one.assign(metric="diverged", value=99.0)])
    best = {(c.loss, c.males): c.tuning for c in claims.chosen(with_loss)}
    assert best["vanilla", 16] == usual
