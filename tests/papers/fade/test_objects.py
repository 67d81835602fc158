"""Users with few classes, what is recorded of them, and what stored runs say."""

import doctest
import html

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch.nn.utils import vector_to_parameters

from lgfed_core.data.features.stored import Features, features
from lgfed_core.engine import Participation
from lgfed_core.errors import PartitionError
from lgfed_core.evidence import records
from lgfed_core.evidence.rows import DIVERGED
from lgfed_core.papers import answer_box
from lgfed_core.papers.fade.objects import claims, domains, run, stored as objects
from lgfed_core.papers.fade.objects.run import OBJECTS
from toy import every, named, stored_row


def test_examples_run():
    found = doctest.testmod(domains)
    assert found.attempted and not found.failed


def test_the_papers_users_have_the_classes_that_it_names():
    first, second, third = domains.classes_of(3, 31, 20, 10)
    assert first.tolist() == list(range(20)) and second.tolist() == list(range(10, 30))
    assert third.tolist() == [*range(9), *range(20, 31)]  # goes round
    assert all(len(c) == 31 for c in domains.classes_of(3, 31, 99, 10))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 9))
def test_every_row_has_one_owner_and_classes_are_dealt_evenly(each, users, seed):
    y = np.random.default_rng(seed).integers(0, 12, 200)
    owned = domains.classes_of(users, 12, each, 12 // users)
    if set(y) - set(np.concatenate(owned)):
        with pytest.raises(PartitionError, match="belongs to no user"):
            domains.dealt(y, owned, seed)
        return
    held = domains.dealt(y, owned, seed)
    assert sorted(np.concatenate(held)) == list(range(200))
    for label in set(y):
        sizes = [
            (y[rows] == label).sum()
            for rows, mine in zip(held, owned, strict=True)
            if label in mine
        ]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == (y == label).sum()


def some(rows: int, shift: float, width: int = 12) -> Features:
    rng, y = np.random.default_rng(rows), np.arange(rows) % 10
    x = rng.standard_normal((rows, width)) + 3 * np.eye(width)[y] + shift
    return features(f"rows{rows}", x, y, y, stand_in="made up")


def test_a_task_hides_the_targets_labels():
    task = domains.joined("a->b", some(60, 0), some(50, 1))
    assert (task.data.train.y[60:] == -1).all() and task.sources == 60
    assert task.data.test.y[60:].tolist() == (np.arange(50) % 10).tolist()
    assert task.data.train.groups[:, 0].bincount().tolist() == [60, 50]
    held = domains.partition(task, 3, 6, 3, 0)
    assert held.train.of(0).tolist() == list(range(60)) and int(held.train.size.sum()) == 110


def test_components_are_the_sources():
    source, target = domains.reduced(some(60, 0), some(50, 5), 4)
    assert source.x.shape == (60, 4) and target.x.shape == (50, 4)
    assert source.x.mean(0).abs().max() < 1e-4 < target.x.mean(0).abs().max()
    assert source.x.var(0).mean().item() == pytest.approx(1, rel=1e-3)
    more, _ = domains.reduced(some(60, 0), some(50, -5), 4)
    assert torch.equal(more.x, source.x)
    source, target = domains.reduced(some(8, 0), some(50, 5), 10)  # Office-Caltech's D has 157
    assert source.x.shape == (8, 7) and target.x.shape == (50, 7)  # fewer than asked
    assert source.x.isfinite().all() and (source.x.var(0) > 1e-6).all()


def test_the_ten_shared_classes_are_numbered_alike():
    y = np.arange(31)
    found = domains.shared_classes(features("office", np.eye(31), y, y), "office31")
    assert found.y.sort().values.tolist() == list(range(10))
    mugs = domains.objects.objects.KINDS["caltech10"].classes.index("mug")
    at = domains.objects.objects.KINDS["office31"].classes.index("mug")
    assert found.x[found.y == mugs].argmax() == at


def test_released_is_what_the_code_does():
    cfg = OBJECTS.settings("paper", "as_released")
    assert (cfg.noniid, cfg.information, cfg.relabelled, cfg.least) == (15, 0.0, 0.1, 10)
    parts = run.Parts(cfg, "A->D", [0])
    assert parts.method("cdan", 9).entropy == "cancels"
    assert parts.method("shot", 9).opt_out == 1 and parts.method("dann+shot", 9).opt_out == 0


TASKS, SEEDS = domains.TASKS["office31"], (0, 1, 2)
WORTH = {"source_only": 70, "source_only_norm": 70, "dann": 75, "cdan": 80, "shot": 78}


def rows(users: str = "noniid", lost: tuple = (), **worth) -> pd.DataFrame:
    """Stored rows of all tasks; ``lost``: (task, seed) of runs of DANN at chance."""
    common = dict(table=run.TABLE, data="office31", setting="federated", backbone="inception_v3")
    found = every(method=WORTH | worth, task=TASKS, seed=SEEDS)
    method, seed = found["method"], found["seed"]
    at_chance = method.eq("dann") & found.set_index(["task", "seed"]).index.isin(lost)
    before = method.str.startswith("source_only")
    value = method.map(WORTH | worth) + 0.3 * seed * (1 + method.eq("shot"))
    found = found.assign(
        **stored_row(**common, stand_in="Inception v3 features"),
        value=value.mask(at_chance, 3.0),
        method=method.replace(run.FEDERATED),
        target_users=np.where(before, "", users),
        per_round=np.where(before, np.nan, 2),
    )
    kinds = [("last", "target_acc", 0), ("best_val", "target_acc", 1), ("last", "oracle_acc", 2)]
    some = (found.assign(selection=s, metric=m, value=found["value"] + n) for s, m, n in kinds)
    return pd.concat(some, ignore_index=True)


def scattered(lines: pd.DataFrame) -> pd.DataFrame:
    """``lines`` with their means, in which no two methods differ by the same in each seed."""
    number = lines["method"].map({name: n for n, name in enumerate(lines["method"].unique(), 1)})
    off = lines["seed"].map({0: -0.01, 1: 0.02, 2: -0.01})
    return lines.assign(value=lines["value"] + number * off)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)

    def keep(*frames: pd.DataFrame) -> pd.DataFrame:
        for frame in frames:
            records.record(run.NAME, frame, tmp_path)
        return objects.rows()

    return keep


def test_before_any_run_nothing_is_judged(stored):
    found = objects.rows()
    assert found.empty and claims.judged(found).empty
    assert objects.swept(found).empty and objects.ended(found).empty
    told = claims.told()
    assert {one.verdict for one in told.values()} == {"open"}
    assert not any(one.stands() for one in told.values())


def test_claims_go_by_the_averages_of_seeds(stored):
    found = stored(scattered(rows()), scattered(rows("iid", shot=90)))
    lines = claims.judged(found)
    assert lines.loc["F7", "verdict"] == "confirmed" and lines.loc["F8", "verdict"] == "confirmed"
    assert lines.loc["F7", "estimate"] == pytest.approx(80 - 78 - 0.3)  # over SHOT, the weaker
    assert claims.told()["F7"].words == claims.told()["F8"].words == "holds"
    assert "on stand-in data" in lines.loc["F7", "said"]
    found = stored(scattered(rows(cdan=60)))
    assert claims.judged(found).loc["F7", "verdict"] == "refuted"


def test_an_average_is_of_the_seeds_that_have_run_all_tasks(stored):
    some = rows()
    more = some[some["method"] == "source_only"].query("task == 'D->A' and seed == 0")
    whole = some[(some["task"] != "D->A") | (some["method"] != "fade_cdan")]
    found = stored(whole, *(more.assign(seed=seed, value=0.0) for seed in (7, 8)))
    assert "F7" not in claims.judged(found).index
    mean = objects.average(objects.accuracy(found)).mean()
    assert np.isnan(mean["cdan"])
    assert mean[["dann", "source_only"]].tolist() == pytest.approx([75.3, 70.3])


def test_the_sources_models_stand_for_central_lines_of_the_paper_and_are_compared_once(stored):
    cfg = OBJECTS.settings("paper")
    history = pd.DataFrame({"round": [1], "seed": [0], "target_acc": [0.8], "information": [1.0]})
    cells = {
        (cell["method"], cell["setting"]): run._printed(cfg, cell)
        for kind in ("relu", "norm")
        for cell, _ in run._by_cell(cfg, f"pretraining_{kind}", history)
    }
    printed = cells.pop(("source_only_norm", "federated"))
    assert cells == dict.fromkeys(
        [("source_only", "federated"), ("resnet", "central"), ("source_only", "central")], True
    )
    assert not printed
    usual = rows()
    other = usual[usual["method"] == "source_only_norm"]
    central = other.assign(method="source_only", setting="central", value=1.0)
    for users in ("noniid", "central"):
        wide = objects.accuracy(stored(usual, central), users)
        assert wide["source_only"].min() == 70


def test_one_collapse_proves_that_there_are_some(stored):
    whole = claims.judged(stored(rows())).loc["F6"]
    assert whole["verdict"] == "inconclusive" and whole["estimate"] == 0
    assert claims.dann_fails(objects.rows())[0].evidence.p_against == pytest.approx((2 / 3) ** 3)
    found = stored(rows(lost=[("D->A", 1)]))
    line = claims.judged(found).loc["F6"]
    assert line["verdict"] == "confirmed" and line["estimate"] == pytest.approx(100 / 18)
    assert claims.told()["F6"].words == "holds"


def gone() -> pd.DataFrame:
    """A run of DANN that left the finite numbers has a row of its own alone."""
    some = rows()
    lost = (some["task"] == "W->A") & (some["seed"] == 2) & (some["method"] == "fade_dann")
    one = some[lost].iloc[:1].assign(metric=DIVERGED, value=7.0, selection="last")
    return pd.concat([some[~lost], one])


def with_one_user(*lost: tuple) -> pd.DataFrame:
    """Of DANN, CDAN and SHOT one user a round as well."""
    more = rows(lost=lost)
    return more[more["per_round"] == 2].assign(per_round=1)


USUAL, RELEASED = ("as_described", "noniid", 2), dict(protocol="as_released")


@pytest.mark.parametrize(
    "frames, many, fallen",
    [
        ([rows(lost=[("D->A", 1)])], 54, [(*USUAL, "D->A", 1)]),
        ([gone()], 54, [(*USUAL, "W->A", 2)]),
        ([rows(), with_one_user(("W->A", 1))], 108, [("as_described", "noniid", 1, "W->A", 1)]),
        (  # non-i.i.d. users as released are those of 15 classes, which are counted already
            [rows(), rows("iid", [("A->D", 0)]).assign(**RELEASED), rows().assign(**RELEASED)],
            108,
            [("as_released", "iid", 2, "A->D", 0)],
        ),
    ],
)
def test_every_run_is_counted_once_and_those_that_collapsed_are_known(stored, frames, many, fallen):
    found = stored(*frames)
    runs = objects.ended(found)
    shown = runs.loc[runs["fallen"], ["protocol", "users", "per_round", "task", "seed", "method"]]
    assert len(runs) == many
    assert [*shown.itertuples(index=False, name=None)] == [(*one, "dann") for one in fallen]
    (part,) = claims.dann_fails(found)
    some = sum(one[0] == "as_described" for one in fallen)
    described = (runs["protocol"] == "as_described") & (runs["method"] == "dann")
    assert part.evidence.estimate == pytest.approx(100 * some / described.sum())


def test_a_longer_run_stands_beside_the_usual_and_nowhere_else(stored):
    some = rows()
    central = some["method"].isin(["fade_dann", "fade_cdan"])
    usual = some[central].assign(setting="central", target_users="", per_round=None)
    usual = usual.assign(method=usual["method"].str.removeprefix("fade_"))
    alone = usual[(usual["task"] == "A->W") & (usual["seed"] == 0)]
    longer = alone.assign(rounds=400, value=alone["value"] + 5)
    found = stored(pd.concat([some, usual, longer]).assign(rounds=lambda f: f["rounds"]))
    both = (objects.accuracy(found, "central", **of) for of in (dict(rounds=400), {}))
    more = (next(both) - next(both))[["dann", "cdan"]].dropna()
    assert more.index.tolist() == [("A->W", 0)] and more.iloc[0].tolist() == [5, 5]
    before = some[some["method"].eq("source_only") & some["seed"].eq(0)].assign(rounds=400)
    runs = objects.ended(stored(before))
    assert set(runs.loc[runs["rounds"] == 400, "users"]) == {"central"}
    assert objects.accuracy(found, "central").notna().all().all()


def tried(adds: float, told: float, *methods: str, seeds=SEEDS, users="noniid", **values):
    """Rows with other ``values`` of settings: accuracies and information that much higher."""
    some = rows(users)
    names = [run.FEDERATED[m] for m in methods]
    some = some[some["method"].isin(names) & some["seed"].isin(seeds)]
    some = some.assign(value=some["value"] + adds, **(dict.fromkeys(run.TRIED) | values))
    usual = (some["selection"] == "last") & (some["metric"] == "target_acc")
    return pd.concat([some, some[usual].assign(metric="information", value=told)])


def test_a_sweep_chooses_by_two_scores_and_a_claim_stands_where_all_ways_agree(stored):
    usual = [rows(), rows("iid"), tried(0, 1.0, "dann", "cdan", "shot")]
    others = [
        tried(9, 1.2, "cdan", seeds=[0], weight=3.0),
        tried(15, 0.9, "cdan", "dann", seeds=[0], lr=0.03),
        tried(9, 1.3, "cdan", seeds=[0], weight=9.0, users="iid"),  # not of the sweep
    ]
    some = pd.concat([*usual, *others])
    found = stored(some.drop_duplicates([c for c in some if c != "value"]))
    assert objects.chosen(found, "information") == {"cdan": {"weight": 3.0}, "dann": {}, "shot": {}}
    by_labels = {m: {"lr": 0.03} for m in ("cdan", "dann")}
    assert objects.chosen(found, "target_acc") == by_labels | {"shot": {}}
    lines = objects.swept(found)
    assert set(lines.loc["cdan"].index) == {(0.01, 1.0), (0.01, 3.0), (0.03, 1.0)}
    assert lines.loc[("cdan", 0.01, 3.0), "target_acc"] == pytest.approx(89)
    fell = tried(-80, 0.1, "cdan", seeds=[0], weight=9.0)
    before = rows()[lambda f: f["method"].eq("source_only") & f["seed"].eq(0)]
    before = before.assign(**dict.fromkeys(run.TRIED) | dict(weight=9.0))
    broken = stored(fell[fell["metric"] == "target_acc"], before)
    assert objects.lost(broken).to_dict() == {("cdan", 0.01, 9.0): 6}
    assert objects.swept(broken).equals(lines)  # not to be chosen
    lost = objects.ended(broken).query("fallen")
    assert set(lost["weight"]) == {9} and set(lost["task"]) == set(TASKS)
    assert objects.longer(found, "noniid") == {}

    long = [
        tried(adds, 1.0, *methods, users=users, rounds=300, **own)
        for users in ("noniid", "iid")
        for adds, methods, own in (
            (0, ("dann", "shot"), {}), (-4, ("cdan",), {}), (5, ("cdan",), dict(weight=3.0))
        )
    ]  # fmt: skip
    found = stored(*long)
    longer = {way: objects.average(wide) for way, wide in objects.longer(found, "noniid").items()}
    assert {way: of["cdan"].mean() for way, of in longer.items()} == pytest.approx(
        {"information": 85.3, "": 76.3}
    )
    lines = claims.judged(found)
    # by information ahead of SHOT, at the usual weight behind: the ways turn it, and none counts
    assert lines.loc["F7", "verdict"] == "inconclusive"
    assert lines.loc["F7", ["estimate", "low"]].tolist() == pytest.approx([-2.3, -3.05], abs=0.1)
    # SHOT behind CDAN's 85.3 and ahead of its 76.3 likewise; once it is ahead of both, that stands
    assert lines.loc["F8", "verdict"] == "inconclusive"
    found = stored(tried(15, 1.0, "shot", users="iid", rounds=300))
    line = claims.judged(found).loc["F8"]
    assert line["verdict"] == "confirmed"
    assert claims._ways("cdan", "shot") == [-2, 7]
    assert objects.accuracy(found)["cdan"].mean() == pytest.approx(80.3)  # as it was


def test_runs_with_more_users_a_round_and_the_papers_averages_stand_beside(stored):
    stored(rows())
    usual = "run fade.objects --scale paper --protocol as_described --seeds 0-2 --set users=noniid "
    usual += "methods=dann,cdan,shot central_methods="
    assert [c.partition("lgfed_core ")[2] for c in OBJECTS.remade(objects.rows())] == [usual]
    found = stored(rows().assign(value=lambda f: f["value"] - 2, per_round=4))
    assert OBJECTS.remade(found)[-1].endswith("central_methods= per_round=4")
    less = objects.accuracy(found) - objects.accuracy(found, per_round=4)
    assert less[list(objects.FAIR)].mean().tolist() == pytest.approx([2, 2, 2])
    # the mean of six printed numbers
    assert objects.paper_means()["noniid", "cdan"] == pytest.approx(86.5, abs=0.05)


@pytest.mark.parametrize(
    ("own", "drawn"), [({}, True), ({"lr": 0.1}, False), ({"data": "caltech"}, False)]
)
def test_each_users_way_is_recorded_where_the_page_draws_it(own, drawn):
    cfg = OBJECTS.settings("paper", **own)
    history = pd.DataFrame(
        {"round": [1, 2], "seed": 0, "target_acc": 0.8, "information": 1.0, "user1_acc": 0.5}
    )
    found = OBJECTS._cell(cfg, dict(run._by_cell(cfg, "cdan_2", history)[0][0]), history)
    assert (run.CURVES in set(found["table"])) == drawn
    assert (found["metric"] == "user1_acc").any()


def test_the_card_has_the_commands_of_all_rows_and_of_no_others(stored):
    longer = rows()[lambda f: f["seed"] == 0].assign(rounds=300, weight=10.0)
    other = rows()[lambda f: f["seed"] < 2].assign(data="caltech")
    stored(pd.concat([longer, other]))
    text = html.unescape(answer_box.Box("fade/objects", experiments=[OBJECTS]).html())
    assert text.count("<code>") == 2 and "covered by 2 commands" in text
    games = "users=noniid methods=dann,cdan,shot central_methods="
    assert f"--seeds 0 --set rounds=300 weight=10.0 {games}<" in text
    some = "'tasks=A->D,A->W,D->A,D->W,W->A,W->D'"  # of Office-Caltech's twelve
    assert f"--seeds 0-1 --set data=caltech {some} {games}<" in text


def test_central_is_one_step_on_the_sum_of_both_losses(monkeypatch):
    """At the full rate and decay, each domain's game at half the weight: by hand, from autograd."""
    task = domains.joined("a->b", some(60, 0), some(50, 1))
    monkeypatch.setattr(run.Parts, "both", task)
    own = dict(rounds=1, steps=2, batch_size=64, dropout=0.0, weight=3.0, pretraining=1)
    cfg = OBJECTS.settings("smoke", **own)
    parts = run.Parts(cfg, "a->b", [0], engine=dict(workers=1))
    before = parts.pretraining("relu")
    found = parts.central(before, "dann")
    fed, start = parts.federation("dann", Participation())
    vector_to_parameters(parts.taken(before, start, fed)[0], fed.net.parameters())
    w = dict(fed.net.named_parameters())
    loss, train = 0.0, task.data.train
    for k, rows_ in enumerate((slice(0, 60), slice(60, None))):
        at = dict(watch=lambda z: z.detach())  # lambda is 0 in the first round
        outputs, logit = fed.net(train.x[rows_], **at)
        truth = torch.full_like(logit, float(k))
        loss = loss + cfg.weight / 2 * F.binary_cross_entropy_with_logits(logit, truth)
        if k == 0:
            loss = loss + F.cross_entropy(outputs, train.y[rows_], label_smoothing=cfg.smoothing)
    slopes = torch.autograd.grad(loss, list(w.values()))
    for (name, value), slope in zip(w.items(), slopes, strict=True):
        step = cfg.lr * (1 + cfg.momentum) * (slope + cfg.weight_decay * value)
        assert torch.allclose(named(found)[name][0, 0], value - step, atol=1e-6), name


def test_on_visda_one_user_takes_part_in_a_round(stored):
    assert OBJECTS.settings("paper", data="visda").per_round == (1,)
    assert OBJECTS.settings("paper", data="visda", per_round=(2,)).per_round == (2,)
    assert OBJECTS.settings("paper", data="officehome").per_round == (2,)
    lines = rows(**{"cdan+shot": 90})[lambda f: f["task"] == TASKS[0]]
    lines = lines.assign(data="visda", task=domains.TASKS["visda"][0])
    assert claims.order(stored(lines)) == []  # two users a round
    stored(lines.assign(per_round=lines["per_round"].replace(2, 1)))
    assert len(claims.order(pd.DataFrame())) == 3


def test_before_visda_the_order_is_judged_on_what_is_nearest(stored):
    found = stored(scattered(rows(**{"cdan+shot": 90})))
    parts = {part.name: part.evidence.estimate for part in claims.order(found)}
    nearest = objects.accuracy(found).loc[list(claims.NEAREST)].mean()
    assert parts["CDAN+SHOT ahead of SHOT"] == pytest.approx(nearest["cdan+shot"] - nearest["shot"])
    assert claims.stand_in(found)["F9"].startswith("Office-31 from A for VisDA-C")
    assert "VisDA" in claims.judged(found).loc["F9", "said"]
