"""Two domains as two devices, what is measured on them, and what stored runs say."""

from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from lgfed_core.data import Dataset, Split, mnist
from lgfed_core.engine import Federation, LocalTraining
from lgfed_core.engine.looped import Looped
from lgfed_core.errors import DataError, NotAvailable, SettingsError
from lgfed_core.fill import goals
from lgfed_core.methods import FADE
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.digits import DigitsNet
from lgfed_core.papers import commands, fade
from lgfed_core.papers.fade.digits import claims as judged, domains, run as digits
from lgfed_core.papers.fade.digits.adaptation import Adaptation
from lgfed_core.papers.fade.digits.run import DIGITS
from toy import Small, every, named, noisy_digits, prepared


@pytest.fixture
def few(monkeypatch):
    """MNIST with 40 pictures and USPS with 30."""
    monkeypatch.setattr(domains, "_mnist", lambda: noisy_digits("mnist", 40, 20))
    monkeypatch.setattr(domains, "_second", lambda: (noisy_digits("usps", 30, 20, 1), ""))
    domains.digits.cache_clear()
    yield
    domains.digits.cache_clear()


def test_the_target_has_no_labels_and_a_group_of_its_own(few):
    both = domains.digits("usps-mnist")
    source, target = (both.partition.train.of(k) for k in (0, 1))
    assert (len(source), len(target)) == (30, 40)
    train, test = both.data.train, both.data.test
    assert torch.equal(train.y[source], torch.arange(30) % 10)
    assert (train.y[target] == -1).all()
    assert (train.groups[source] == 0).all() and (train.groups[target] == 1).all()
    assert torch.equal(train.x[target], noisy_digits("mnist", 40, 20).train.x)
    assert torch.equal(test.y[both.partition.test.of(1)], torch.arange(20) % 10)  # to be measured
    assert train.x.shape == (70, 1, 28, 28)
    with pytest.raises(SettingsError, match="none of mnist-usps"):
        domains.digits("mnist-svhn")


def test_convolutions_of_a_batch_are_in_the_order_that_is_fast_on_a_cpu(few):
    batch = domains.digits("usps-mnist").data.train.take(torch.tensor([3, 1, 4])).x
    convolved = DigitsNet().encoder[0](batch)  # [3, 20, 24, 24]
    assert convolved.stride()[1] == 1 and not convolved.is_contiguous()


def test_small_digits_stand_in_where_usps_cannot_be_had_and_for_no_wrong_file(monkeypatch):
    load = Mock(side_effect=[DataError("sha256 of another file"), NotAvailable("no network")])
    monkeypatch.setattr(domains.data, "load", load)
    with pytest.raises(DataError, match="another file"):
        domains._second()
    found, stand_in = domains._second()
    assert stand_in == "UCI digits"
    assert found.train.x.shape == (1198, 1, 28, 28) and len(found.test) == 599
    assert found.train.x.min() == -1 and found.train.x.max() == 1


@pytest.mark.mirror
def test_usps_is_the_second_domain_where_it_can_be_had():
    found, stand_in = domains._second()
    if stand_in:
        pytest.skip("USPS is not here; `python -m lgfed_core data usps` says why")
    assert len(found.train) == 7291 and len(found.test) == 2007
    assert found.train.x.shape[1:] == (1, 28, 28) and found.train.y.bincount()[0] == 1194


def test_mnist_is_scaled_to_the_range_of_the_other():
    pixels = torch.tensor([0.0, 0.5, 1.0]).repeat(784)[:784]
    x = (pixels[None] - mnist.MEAN) / mnist.STD
    grey = domains._grey(x)
    assert grey.shape == (1, 1, 28, 28)
    assert torch.allclose(grey.flatten(), 2 * pixels - 1, atol=1e-6)


class Everything(Small):
    def forward(self, x, watch=None, everything=False):
        if not everything:
            return super().forward(x, watch)
        return torch.cat(super().forward(x, lambda z: z), -1)


def test_measures_are_those_of_each_domain():
    torch.manual_seed(0)
    sets = [
        Dataset(n, *(Split(torch.randn(m, 1, 1, 8), torch.randint(3, (m,))) for m in (9, 7)), 3)
        for n in ("a", "b")
    ]
    both = domains.joined(*sets)
    flat = {part: getattr(both.data, part) for part in ("train", "test")}
    flat = {part: replace(split, x=split.x[:, 0, 0]) for part, split in flat.items()}
    net = Everything()
    fed = Federation(replace(both.data, **flat), [both.partition], net, [0])
    found = Adaptation().look(1, Looped(prepared(fed, FADE(), LocalTraining(0.1, 3))))
    for k, name in enumerate(("source", "target")):
        x, y = sets[k].test.x[:, 0, 0], sets[k].test.y
        outputs, logit = net(x, watch=lambda z: z)
        p = logit.sigmoid() if k else 1 - logit.sigmoid()
        expected = {
            "acc": (outputs.argmax(-1) == y).float().mean(),
            "loss": F.cross_entropy(outputs, y),
            "adversarial": -p.log().mean(),
        }
        for what, value in expected.items():
            assert found[f"{name}_{what}"].item() == pytest.approx(value.item(), rel=1e-4)


def test_a_run_gives_tidy_rows_for_each_seed_and_probability(few):
    cfg = DIGITS.settings("smoke", per_class=None, statistics=("local",))
    ran = dict(DIGITS.stages(cfg, [0, 1], resume=False, workers=1))
    found = {part: DIGITS.records(cfg, part, out) for part, out in ran.items()}
    played = found["mnist-usps:losses"]
    end = played[played["table"] == domains.TABLE]
    assert len(end) == 2 * 2 * 2 * 6  # seeds, losses, probabilities, metrics
    assert set(end["probability"]) == {0.1, 0.9} and end["value"].notna().all()
    way = played[played["table"] == domains.CURVES]
    assert sorted(set(way["round"])) == [2, 4]
    ids = ["loss", "probability", "metric"]
    last = way[(way["round"] == 4) & (way["seed"] == 1)].set_index(ids)
    mine = end[end["seed"] == 1].set_index(ids)
    assert last["value"].sort_index().equals(mine["value"].sort_index())
    for name in ("central", "pretraining"):
        assert found[f"mnist-usps:{name}"]["probability"].isna().all()
        assert set(found[f"mnist-usps:{name}"]["loss"]) == {name}
    assert set(found["mnist-usps:statistics:local"]["statistics"]) == {"local"}


def test_losses_that_train_together_are_those_that_train_alone(few):
    cfg = DIGITS.settings("smoke", per_class=None, statistics=(), opt_outs=(), central=False)
    found = []
    for losses in (("vanilla", "squared"), ("squared",), ("vanilla",)):
        own = dict(record=False, resume=False, workers=1)
        rows, _ = DIGITS.run(replace(cfg, losses=losses), [0, 1], **own)
        rows = rows[(rows["table"] == domains.TABLE) & rows["loss"].isin(domains.POWERS)]
        found.append(rows.set_index(["loss", "seed", "probability", "metric"])["value"])
    both, squared, vanilla = found
    assert both.sort_index().equals(pd.concat([squared, vanilla]).sort_index())
    assert not vanilla.loc["vanilla"].equals(squared.loc["squared"])


def test_central_is_one_step_of_each_device_on_the_mean_loss(few, monkeypatch):
    """40 rows and 30, whole, weigh alike; the server takes the average as it is: from autograd."""
    monkeypatch.setattr(digits, "DigitsNet", partial(DigitsNet, dropout=0.0))
    own = dict(per_class=None, rounds=1, steps=2, batch_size=64, pretraining=1)
    cfg = DIGITS.settings("smoke", **own)
    parts = digits.Parts(cfg, "mnist-usps", [0], torch.device("cpu"), None, dict(workers=1))
    monkeypatch.setattr(fade.parts, "run", ran := Mock(wraps=fade.parts.run))
    before = replace(parts.pretraining(), diverged={0: 1})
    out = parts.central(before)
    assert [one.kwargs["first_round"] for one in ran.call_args_list] == [0, cfg.pretraining]
    assert out.diverged == {0: 1}  # as what it goes on from
    parts.federated(before, "losses", [0.2])
    fed, _, training = ran.call_args.args[:3]
    assert fed.participation.availability.tolist() == [[0.8, 0.2]]  # the target is the second
    assert training.annealing == Annealing(cfg.rounds * cfg.steps)
    assert len(out.history) and out.tensors["taken"].tolist() == [[1.0, 1.0]]
    state = {name: value[0, 0] for name, value in named(before).items()}
    fed, _ = parts.federation([0.5])
    w = {n: state[n].clone().requires_grad_() for n, _ in fed.net.named_parameters()}
    both, loss = domains.digits("mnist-usps", per_class=None, tested=cfg.tested), 0.0
    for k in (0, 1):
        mine = both.partition.train.of(k)
        x, y = both.data.train.x[mine], both.data.train.y[mine]
        at = dict(watch=torch.Tensor.detach)  # lambda is 0 in the first round
        outputs, logit = functional_call(fed.net.eval(), {**state, **w}, (x,), at)
        truth = torch.full_like(logit, float(k))
        loss = loss + F.binary_cross_entropy_with_logits(logit, truth) / 2
        loss = loss + (F.cross_entropy(outputs, y) / 2 if k == 0 else 0)
    slopes = torch.autograd.grad(loss, list(w.values()))
    for (name, value), slope in zip(w.items(), slopes, strict=True):
        step = cfg.lr * (1 + cfg.momentum) * (slope + cfg.weight_decay * value)
        assert torch.allclose(named(out)[name][0, 0], value - step, atol=1e-6), name


# Claims, on made-up rows.


def made_up(vanilla=(80.0, 95.0, 82.0), squared=(90.0, 94.0, 91.0), rare=(2.0, 1.0), source=99.0):
    """Rows of three seeds in both directions; ``rare``: adversarial loss of both losses."""
    rng, each = np.random.default_rng(0), dict(direction=domains.DIRECTIONS, seed=range(3))
    games = every(**each, loss=domains.POWERS, probability=domains.ENDS).assign(table=domains.TABLE)
    declined = every(**each, opt_out=domains.Settings.opt_outs).assign(table=domains.OPT_OUT)
    adversarial = games["loss"].map(dict(zip(domains.POWERS, rare, strict=True)))
    adversarial += rng.normal(0, 0.02, len(games))
    way = games.assign(table=domains.CURVES, round=50)
    rows = [
        games.assign(metric="target_acc", value=[*vanilla, *squared] * 6),
        games.assign(metric="source_acc", value=99.0),
        declined.assign(metric="source_acc", value=source),
    ]
    noisy = [some.assign(value=some["value"] + rng.normal(0, 0.1, len(some))) for some in rows]
    noisy.append(games.assign(metric="target_adversarial", value=adversarial))
    noisy.append(way.assign(metric="target_loss", value=adversarial))
    return pd.concat(noisy, ignore_index=True).assign(rounds=domains.Settings.rounds, stand_in="")


def few_rates(rows: pd.DataFrame, directions=domains.DIRECTIONS) -> pd.DataFrame:
    """``rows`` without half of the rates of opting out in these directions."""
    return rows[~(rows["opt_out"].gt(0.6) & rows["direction"].isin(directions))]


def all_four(said: str) -> dict[str, str]:
    return dict.fromkeys(("F1", "F2", "F3", "F14"), said)


@pytest.mark.parametrize(
    "rows, said",
    [
        (made_up(), all_four("confirmed")),
        (made_up().assign(rounds=500.0), all_four("suggested by 500 of 8,600 rounds: confirmed")),
        (made_up().assign(stand_in="uci"), all_four("on stand-in data (uci): confirmed")),
        (made_up(vanilla=(95.0, 80.0, 95.0)), {"F1": "refuted"}),
        (made_up(squared=(70.0, 94.0, 70.0)), {"F2": "refuted"}),
        (made_up(rare=(1.0, 2.0)), {"F3": "refuted"}),
        (made_up(source=90.0), {"F14": "refuted"}),
        (made_up()[lambda rows: rows["loss"] == "vanilla"], {"F2": None}),
        (made_up().iloc[:0], all_four(None)),
        (few_rates(made_up()), {"F14": "confirmed so far, 4 of 8 comparisons"}),
        (few_rates(made_up(), ["mnist-usps"]), {"F14": "confirmed so far, 6 of 8 comparisons"}),
        (few_rates(made_up(source=90.0)), {"F14": "refuted"}),
        (
            made_up()[lambda rows: rows["direction"] == "mnist-usps"],
            {"F1": "confirmed so far, 2 of 4 comparisons"},
        ),
    ],
)
def test_claims_that_hold_are_confirmed_and_others_refuted_or_not_judged(rows, said):
    lines = judged.judged(rows)
    assert {claim: lines["said"].get(claim) for claim in said} == said
    short = lines["said"].str.startswith("suggested")
    assert (lines["verdict"].eq("suggested") == short).all()


def test_opting_out_has_a_column_for_each_rate_beside_never():
    rows = made_up()
    gone = (rows["table"] == domains.OPT_OUT) & (rows["direction"] == "mnist-usps")
    found = judged.opting_out(rows[~gone | (rows["opt_out"] > 0.9)], "source_acc")
    ran = {d: mine.dropna(axis=1).columns.tolist() for d, mine in found.groupby("direction")}
    assert ran == {"mnist-usps": [0, 1], "usps-mnist": [0, 0.25, 0.5, 0.75, 1]}


def test_rows_of_shorter_games_have_a_scale_of_their_own():
    assert DIGITS.settings("paper", rounds=500).recorded == "short"
    assert [DIGITS.settings(scale).recorded for scale in ("paper", "smoke")] == ["paper", "smoke"]


def test_the_named_commands_make_the_stored_rows_and_no_others():
    base = dict(protocol="as_described", scale="short", rounds=500.0, seed=0, statistics="")
    there = {
        "mnist-usps": [
            dict(table=domains.OPT_OUT, opt_out=0.5),
            dict(table=domains.STATISTICS, statistics="local"),
        ],
        "usps-mnist": [dict(table=domains.OPT_OUT, opt_out=p) for p in (0.25, 1.0)],
    }
    rows = [
        base | dict(direction=direction) | ids
        for direction, some in there.items()
        for ids in (*(dict(table=domains.TABLE, loss=x) for x in domains.POWERS), *some)
    ]
    first, second = commands.of_rows(DIGITS, pd.DataFrame(rows))
    assert "directions=mnist-usps losses=vanilla,squared opt_outs=0.5 statistics=local" in first
    assert "directions=usps-mnist losses=vanilla,squared opt_outs=0.25,1.0 statistics= " in second
    pieces = [dict(piece.changes) for piece in DIGITS.pieces("as_described")]
    pieces = [changes for changes in pieces if changes["directions"] == ("mnist-usps",)]
    made = {name for changes in pieces for name in DIGITS.settings("paper", **changes).names()}
    assert made == set(DIGITS.settings("paper").names())  # each part has a piece, by its name


def test_what_no_claim_asks_for_is_never_planned():
    known = [piece for piece in DIGITS.pieces("as_described") if piece.aside]
    assert {piece.name.split(":", 1)[1] for piece in known} == {
        "central", "statistics:local", "statistics:averaged",
    }  # fmt: skip
    assert not set(known) & set(goals.pieces(DIGITS.name))
    assert all(not piece.aside for piece in goals.pieces())


def test_losses_may_be_left_out_and_dann_have_each_domains_statistics():
    cfg = DIGITS.settings("smoke", losses=(), opt_outs=(), statistics=(), central=False)
    assert list(cfg.names()) == ["pretraining"]
    cfg = DIGITS.settings("smoke", losses=(), opt_outs=(), central_statistics=("local",))
    assert list(cfg.names()) == ["pretraining", "central", "central:local", "statistics:local"]


def test_one_direction_at_full_length_judges_alone_and_the_other_is_still_shown():
    rows = made_up(source=99.0)
    short = rows.assign(rounds=500.0, value=rows["value"] - 1)
    full = rows[(rows["direction"] == "usps-mnist") & (rows["table"] != domains.OPT_OUT)]
    both = pd.concat([short, full], ignore_index=True).assign(statistics="")
    lines = judged.judged(both)
    assert set(lines["said"].drop("F14")) == {"confirmed so far, 2 of 4 comparisons"}
    assert set(lines["verdict"].drop("F14")) == {"inconclusive"}
    assert lines.loc["F14", "said"].startswith("suggested by 500 of 8,600 rounds: confirmed")
    shown = judged.each_longest(both)
    assert shown.groupby("direction")["rounds"].max().to_dict() == {
        "mnist-usps": 500, "usps-mnist": 8600,
    }  # fmt: skip
