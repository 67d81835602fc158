"""The audio experiment end to end, on digits; its claims on made-up rows."""

import numpy as np
import pandas as pd
import pytest

from lgfed_core.data import sources
from lgfed_core.data.features import clips
from lgfed_core.data.features.stored import TEST, stratified
from lgfed_core.errors import NotAvailable
from lgfed_core.evidence import records as results
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.papers.cgau import federated
from lgfed_core.papers.cgau.audio import claims, run as audio
from lgfed_core.papers.cgau.audio.run import AUDIO
from lgfed_core.partition import feature_clusters

COUGHS = 20  # of DCASE 2016, task 2, in the clips; ESC-10 has none


@pytest.fixture(scope="module", params=PROTOCOLS)
def smoke(request):
    cfg = AUDIO.settings("smoke", request.param, features="digits")
    outcomes = dict(AUDIO.stages(cfg, [0, 1], resume=False, lanes="batched"))
    rows = pd.concat([AUDIO.records(cfg, part, o) for part, o in outcomes.items()])
    return cfg, rows, outcomes


def test_every_seed_proportion_and_method_has_its_numbers(smoke):
    cfg, rows, outcomes = smoke
    assert list(outcomes) == ["clients", *cfg.methods]
    measured = rows[rows["method"] != ""]
    keys = ["seed", "shuffle_proportion", "method", "selection"]
    each = measured.groupby(keys)["metric"].agg(set)
    assert len(each) == 2 * 2 * len(cfg.methods) * 2
    assert all({"test_auc", "test_acc", "test_loss"} <= names for names in each)
    gamma = rows[rows["metric"] == federated.GAMMA]
    gamma = gamma.pivot_table("value", "seed", "shuffle_proportion")
    assert (gamma[0.0] > gamma[1.0]).all()
    assert set(rows["stand_in"]) == {"UCI digits, 8 against the rest"}
    assert set(rows["table"]) == set(audio.TABLES["digits"])


def test_rows_are_accepted_and_judged_as_stand_in(smoke, tmp_path, monkeypatch):
    cfg, rows, _ = smoke
    results.record(AUDIO.name, rows.assign(scale="paper"), tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert claims.stored().empty and claims.from_stored().empty, "digits are a table of their own"
    said = claims.judged(results.select(AUDIO.name, protocol="as_described"))
    assert list(said.index) == (["C1", "C2", "C5"] if cfg.protocol == "as_described" else [])
    assert said["said"].str.startswith("on stand-in data").all()


def test_progress_knows_each_run_by_its_place(smoke):
    cfg, _, outcomes = smoke
    curves = AUDIO.progress(cfg, {n: o.history for n, o in outcomes.items()})
    cells = curves.groupby(["method", "seed", "shuffle_proportion"])["round"].agg(list)
    assert len(cells) == len(cfg.methods) * 4 and all(c == [1, 2] for c in cells)
    first = outcomes["baseline"].history.iloc[:4]["validation_loss"].tolist()
    mine = curves[(curves["method"] == "baseline") & (curves["round"] == 1)]
    assert mine["validation_loss"].tolist() == first
    assert mine["shuffle_proportion"].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_protocols_are_what_text_and_code_say():
    described, released = (AUDIO.settings("paper", p, features="fsdkaggle2018") for p in PROTOCOLS)
    assert (described.clients, described.rounds) == (10, 1000)
    assert (described.steps, described.units) == (10, 64)
    assert described.validation == 0.05 and described.shuffles == (0, 0.2, 0.4, 0.6, 0.8, 1)
    assert described.net("cgau_kept", 1024, 1).drop_inputs.p == 0
    net = released.net("cgau_averaged", 1024, 1)
    assert net.drop_inputs.p == 0.5 and hasattr(net, "client_out")
    assert released.method("baseline").per == 32 and released.method("cgau_averaged").per == 1
    assert released.method("baseline").positive == 50 and described.method("baseline").positive == 1


def made_up(gain: dict[float, float], gamma: dict[float, float], spread=0.02) -> pd.DataFrame:
    rng, lines = np.random.default_rng(0), []
    for seed in range(12):
        for p in gain:
            base = 99.4 + spread * rng.normal()
            kept = base + gain[p] + spread * rng.normal()
            lines += [
                (seed, p, "baseline", "best_val", "test_auc", base),
                (seed, p, "cgau_kept", "best_val", "test_auc", kept),
                (seed, p, "", "last", federated.GAMMA, gamma[p] + rng.normal()),
            ]
    columns = ["seed", "shuffle_proportion", "method", "selection", "metric", "value"]
    table = pd.DataFrame(lines, columns=columns)
    return table.assign(table=AUDIO.table, protocol="as_described", stand_in="")


PAPER = {0.0: 1784.4, 0.2: 980.0, 0.4: 550.5, 0.6: 271.0, 0.8: 91.8, 1.0: 19.9}
DRAWN = {0.0: 0.4, 0.2: 0.3, 0.4: 0.2, 0.6: 0.1, 0.8: 0.0, 1.0: 0.0}  # the gain


def test_what_holds_on_some_proportions_alone_is_not_confirmed():
    rows = made_up(DRAWN, PAPER)
    for out in DRAWN:
        found = claims.judged(rows[rows["shuffle_proportion"] != out])
        assert not found["verdict"].eq("confirmed").any(), out
    some = claims.judged(rows[rows["shuffle_proportion"].isin([0.2, 0.4])])
    assert some.loc["C1", "said"] == "confirmed so far, 2 of 6 comparisons"
    assert "C2" not in some.index  # neither a first nor a last, and no whole trend
    worse = made_up(dict.fromkeys(PAPER, -0.5), PAPER)
    found = claims.judged(worse[worse["shuffle_proportion"] == 0.2])
    assert found.loc["C1", "said"] == "refuted"


def test_by_hand_what_c1_says_at_a_proportion():
    rows = made_up(dict.fromkeys(PAPER, 0.3), PAPER)
    part = claims.not_lower(rows)[0]
    wide = rows[rows["shuffle_proportion"] == 0].pivot_table("value", "seed", "method")
    gain = wide["cgau_kept"] - wide["baseline"]
    half = 2.200985 * gain.std() * (1 / 12 + 0.625) ** 0.5  # t for 11 degrees; 5/8 of the variance
    found = part.evidence
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (gain.mean(), gain.mean() - half, gain.mean() + half)
    )
    line = claims.judged(rows).loc["C1"]
    weak = min(claims.not_lower(rows), key=lambda p: -p.evidence.p)
    assert (line["low"], line["high"]) == (weak.evidence.low, weak.evidence.high)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (made_up(DRAWN, PAPER), ["confirmed"] * 3),
        (made_up(dict.fromkeys(PAPER, -0.5), dict(zip(PAPER, range(6), strict=True)), 0.001),
         ["refuted"] * 3),
        (made_up(dict.fromkeys(PAPER, 0.0), PAPER), ["confirmed", "inconclusive", "confirmed"]),
    ],
)  # fmt: skip
def test_what_the_paper_draws_would_be_confirmed_and_the_rest_not(rows, said):
    assert claims.judged(rows)["said"].tolist() == said


# How few coughs there are.


@pytest.mark.parametrize("seed", range(12))
def test_on_the_clips_each_client_trains_on_one_cough(seed):
    cfg, cough = AUDIO.settings("paper", features="clips"), np.ones(COUGHS, dtype=int)
    test = stratified(cough, np.arange(COUGHS), TEST, seed)
    dealt = np.bincount(feature_clusters.parts(cough, test, cfg.validation, seed), minlength=3)
    assert dealt[feature_clusters.TRAIN] == cfg.clients == 10 and dealt.tolist() == [10, 3, 7]
    rng, y = np.random.default_rng(seed), np.repeat([1, 0], [COUGHS, 600])
    part = np.full(len(y), feature_clusters.TRAIN)
    part[:COUGHS] = np.repeat(range(3), dealt)
    who = feature_clusters.simulate(rng.standard_normal((len(y), 4)), y, part, 10, seed)
    mine = who.client[(y == 1) & (part == feature_clusters.TRAIN)]
    assert sorted(mine) == list(range(10)) and who.random == ()


@pytest.mark.mirror
def test_the_clips_have_so_many_coughs_each_a_recording_of_its_own():
    try:
        found = list(clips.read(sources.fetch("cough_clips")))
    except NotAvailable as error:
        pytest.skip(str(error).splitlines()[0])
    mine = [clip.recording for clip in found if clip.label == clips.COUGH]
    assert len(mine) == len(set(mine)) == COUGHS
