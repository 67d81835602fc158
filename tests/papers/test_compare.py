"""A method of the user's beside the stored ones: loaded, run as ours are, set beside them."""

import re
from dataclasses import dataclass

import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

import lgfed_core
from lgfed_core.__main__ import main
from lgfed_core.engine.checkpoint import claimed
from lgfed_core.errors import Busy, SettingsError
from lgfed_core.methods import (
    FADE,
    FairLGFedAvg,
    FedAvg,
    FedAvgM,
    FedNova,
    FedPer,
    FedRep,
    LGFedAvg,
    LocalOnly,
)
from lgfed_core.papers.everywhere.claims import chosen
from lgfed_core.papers.everywhere.compare import beside, compare, diverged, source
from lgfed_core.papers.everywhere.compare.experiment import METHOD, Yours
from lgfed_core.papers.everywhere.compare.given import Given, checked
from lgfed_core.papers.everywhere.compare.source import load
from lgfed_core.papers.everywhere.net import SmallNet, base, head
from lgfed_core.papers.everywhere.run import EVERYWHERE
from lgfed_core.paths import RESULTS

MINE = """
from dataclasses import dataclass

import torch
from torch import nn

import lgfed_core


@dataclass(frozen=True, kw_only=True)
class Median(lgfed_core.FedAvg):
    share: float = 0.5

    def aggregate(self, uploads, weights):
        return uploads.quantile(self.share, 0)


@dataclass(frozen=True, kw_only=True)
class Needs(lgfed_core.FedAvg):
    pull: float


@dataclass(frozen=True, kw_only=True)
class Broken(lgfed_core.FedAvg):
    def loss(self, local, batch):
        return local.net(batch.x)


@dataclass(frozen=True, kw_only=True)
class Shrinks(lgfed_core.FedAvg):
    def aggregate(self, uploads, weights):
        return 0.9 * super().aggregate(uploads, weights)


@dataclass(frozen=True, kw_only=True)
class Slips(lgfed_core.FedAvg):
    def aggregate(self, uploads, weights):
        return uploads[0] * {}["b"]


class Bare(lgfed_core.FedAvg):
    pull: float = 1.0


def linear(inputs, classes):
    return nn.Linear(inputs, classes)


def wrong(net):
    return net


def made(net, share: float = 0.5, weighted=True):
    return Median(share=share, weighted=weighted)


few = 3
"""
DIGITS_ALONE = """assert batch.x.shape[-1] == 784, "for digits alone"
        return super().loss(local, batch)"""
SMALL = dict(scale="smoke", tasks=("mnist",), seeds=(0,), workers=1, skip_contract=True)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize(
    ("method", "tuned", "ours"),  # the last: name in the report -> on our page
    [
        (FedAvg, False, {METHOD: "fedavg"}),
        (LGFedAvg, False, {METHOD: "lg_fedavg"}),  # gets its head, as there
        (FedAvg, True, {METHOD: "fine_tuned", "FedAvg (yours)": "fedavg"}),  # beside itself
    ],
)
def test_our_own_methods_give_the_rows_of_our_own_page(method, tuned, ours, tmp_path):
    lines = compare(method, **SMALL, out=tmp_path, tuned=tuned)
    found = pd.read_csv(tmp_path / "rows.csv")
    found = found.assign(method=found["method"].map(ours))
    cfg = EVERYWHERE.settings("smoke", tasks=("mnist",), methods=tuple(ours.values()))
    rows, _ = EVERYWHERE.run(cfg, [0], record=False, resume=False, workers=1)
    keys = ["method", "table", "task", "lr", "round", "seed", "metric"]
    both = found.merge(rows, on=keys, how="outer")
    assert len(both) == len(found) == len(rows)
    assert both["value_x"].to_numpy() == pytest.approx(both["value_y"].to_numpy(), abs=0)
    assert ours.keys() - {METHOD} <= set(lines["other"])
    name, said = method.__name__ + ", fine-tuned" * tuned, (tmp_path / "report.md").read_text()
    assert said.startswith(f"# {name} beside") and f"for {name} from" in said


def test_fine_tuning_goes_on_from_each_device_s_own_layers(tmp_path):
    """Local training that is followed by local training is local training."""
    found = []
    for tuned in (False, True):
        compare(LocalOnly, **SMALL, out=tmp_path / str(tuned), tuned=tuned)
        rows = pd.read_csv(tmp_path / str(tuned) / "rows.csv")
        rows = rows[rows["method"].eq(METHOD) & rows["table"].eq("everywhere")]
        found.append(rows.set_index(["lr", "metric"])["value"])
    assert found[0].equals(found[1])


def test_layers_that_are_not_set_are_those_that_the_method_shares_here():
    net = EVERYWHERE.Settings().net(
        "fedavg", EVERYWHERE.task("mnist", EVERYWHERE.settings("smoke")), 0
    )
    shared = {kind: Given(kind).method(net).layers for kind in (LGFedAvg, FedPer, FedRep)}
    assert shared[FedPer] == shared[FedRep] == base(net) and shared[LGFedAvg] == head(net)


def test_what_a_method_reads_from_where_it_was_made_is_part_of_it():
    def make(rho):
        class Inner(FedAvg):
            def server_update(self, before, average):
                return before + scale(rho) * (average - before)

        return Inner

    factor = 1.0

    def scale(rho):
        return factor * rho

    first = Given(make(1.0)).fingerprint()
    assert Given(make(1.0)).fingerprint() == first != Given(make(0.1)).fingerprint()
    factor = 0.5
    assert Given(make(1.0)).fingerprint() != first


def test_an_answer_that_another_one_silences_is_named():
    class Nova(FedNova):
        def aggregate(self, uploads, weights):
            return uploads.median(0).values

    class Forgets(FedAvg):
        def server_step(self, before, average, memory):
            return average, memory

    class Half(FedAvgM):
        def server_update(self, before, average):
            return average

    said = "Nova.aggregate is never called: merge answers in its place."
    assert said in source.differs(Nova) and "never" not in source.differs(FedNova)
    assert "Forgets.server_step is never called: server_memory is 0." in source.differs(Forgets)
    assert "server_update is never called: server_step answers" in source.differs(Half)


def test_seeds_that_diverge_are_named_and_a_method_without_any_left_is_refused(tmp_path):
    @dataclass(frozen=True, kw_only=True)
    class Bursts(FedAvg):
        def server_update(self, before, average):
            return average * float("inf")

    with pytest.raises(SettingsError, match="all runs of Bursts diverged.*lower --rates"):
        compare(Bursts, **SMALL, out=tmp_path)
    rows = pd.read_csv(RESULTS / "everywhere.csv").query("method == 'fedavg' and scale == 'paper'")
    rows = rows[rows["table"] == "everywhere"].assign(method=METHOD)
    lost = rows["task"].eq("mnist") & rows["seed"].eq(1)

    def said(some):
        return diverged("Mine", some, chosen(some))

    found = said(rows.assign(value=rows["value"].mask(lost)))
    assert found == (["Mine, mnist: seeds 1 diverged"], True)
    gone = said(rows.assign(value=rows["value"].mask(rows["task"] == "mnist")))
    assert gone == (["Mine, mnist: all seeds diverged"], False)
    few = (rows["task"] == "mnist") & (rows["lr"] > 0.1)  # the time was up
    assert said(rows[~few]) == ([], True) and "mnist" not in chosen(rows[~few]).index.unique("task")


def test_another_text_of_a_notebook_s_class_is_another_run():
    shell, found = InteractiveShell(), []
    for share in ("1.0", "0.5"):
        cell = MINE.replace("uploads.quantile(self.share, 0)", f"{share} * uploads.mean(0)")
        assert shell.run_cell(cell).success
        found.append(Given(shell.user_ns["Median"]).fingerprint())
    assert found[0] != found[1]


def test_a_report_is_left_and_a_second_call_only_reads(mine, tmp_path, capsys):
    how = dict(out=tmp_path / "a", settings={"share": "0.4"})
    lines = compare(f"{mine}:Median", **SMALL | dict(skip_contract=False), **how)
    said = "Median keeps 17 promises of the contract. Devices share 55,050 of 55,050 parameters."
    assert said in capsys.readouterr().out and lgfed_core.compare is compare
    assert set(lines["task"]) == {"mnist"} and set(lines["measure"]) <= set(beside.AIMS)
    first = (tmp_path / "a" / "rows.csv").read_text()
    html = (tmp_path / "a" / "report.html").read_text()
    assert "Median(share=0.4) beside" in html and html.count("<img") == lines["measure"].nunique()
    assert not re.search(r"(src|href)='?\"?https?:", html)
    text = (tmp_path / "a" / "report.md").read_text()
    assert "# Median(share=0.4) beside" in text and said in text
    assert "PyTorch" in (tmp_path / "a" / "command.txt").read_text()
    compare(f"{mine}:Median", **SMALL, **how)
    assert (tmp_path / "a" / "rows.csv").read_text() == first
    assert "another method" not in capsys.readouterr().out
    compare(FedAvg, **SMALL, out=tmp_path / "a")
    assert "held the report of another method" in capsys.readouterr().out


def test_another_text_of_the_file_is_another_run_and_one_that_does_not_run_is_named(mine):
    before = Given(load(f"{mine}:Median")).fingerprint()
    assert Given(load(f"{mine}:Median")).fingerprint() == before
    mine.write_text(MINE.replace("share: float = 0.5", "share: float = 0.6"))
    assert Given(load(f"{mine}:Median")).fingerprint() != before
    mine.write_text("import nothing_of_this_name\n")
    with pytest.raises(SettingsError, match=r"mine\.py does not run: ModuleNotFoundError"):
        load(f"{mine}:Median")


def test_a_file_beside_it_that_changes_is_another_run_and_all_files_are_in_the_report(tmp_path):
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "lgfed_test_helper.py").write_text("SHARE = 0.5")
    mine = folder / "mine.py"
    mine.write_text(f"from lgfed_test_helper import SHARE\n{MINE}")
    given = Given(load(f"{mine}:wrong"))  # a function of the network
    before = given.fingerprint()
    assert Given(load(f"{mine}:wrong")).fingerprint() == before
    (folder / "lgfed_test_helper.py").write_text("SHARE = 0.1")
    assert given.fingerprint() != before
    compare(f"{mine}:Median", **SMALL, out=tmp_path / "a")
    assert {path.name for path in (tmp_path / "a" / "code").iterdir()} == {
        *("mine.py", "lgfed_test_helper.py")
    }


def test_a_method_says_in_what_it_differs_and_a_slip_in_a_name_is_seen(mine):
    assert source.differs(FedAvg) == "" and source.differs(load(f"{mine}:linear")) == ""
    median = load(f"{mine}:Median")
    assert source.differs(median) == "Median is FedAvg with its own aggregate."
    mine.write_text(MINE.replace("def aggregate(self", "def agregate(self"))
    said = source.differs(load(f"{mine}:Median"))
    assert "Median is FedAvg with nothing of its own." in said
    assert "Median.agregate is never called; did you mean aggregate?" in said


def test_a_function_that_nothing_calls_is_said_and_a_helper_is_not(mine):
    calls = "(lambda: self.middle(uploads))()"
    helped = f"{calls}\n\n    def middle(self, uploads):\n        return uploads.median(0)[0]"
    late = f"{helped}\n\n    def end_round(self):\n        pass"
    mine.write_text(MINE.replace("uploads.quantile(self.share, 0)", late, 1))
    said = source.differs(load(f"{mine}:Median"))
    assert "Median.end_round is never called, by the engine or by the class." in said
    assert "middle" not in said


def test_more_methods_of_yours_stand_beside_it(mine, tmp_path):
    how = SMALL | dict(skip_contract=True, out=tmp_path / "a")
    lines = compare([f"{mine}:Median", FedAvg, f"{mine}:Shrinks"], **how)
    alone = compare(f"{mine}:Median", **how | dict(out=tmp_path / "b"))
    of = lines[lines["measure"] == "local_test_acc"].set_index("other")
    both = ["FedAvg (yours)", "Shrinks (yours)"]
    assert list(of.index)[:2] == both and of["estimate"].notna().all()
    ours = lines[~lines["other"].isin(both)][["other", "measure", "estimate"]]
    assert ours.reset_index(drop=True).equals(alone[["other", "measure", "estimate"]])
    report = (tmp_path / "a" / "report.md").read_text()
    assert "| Median (yours) |" in report and "| Shrinks (yours) |" in report
    rows = pd.read_csv(tmp_path / "a" / "rows.csv")
    assert set(rows["method"]) == {METHOD, *both}
    with pytest.raises(SettingsError, match="called Median, Median; give each a name of its own"):
        compare([f"{mine}:Median"] * 2, **how)


def test_settings_are_of_the_method_that_was_named_before_them(mine, tmp_path):
    """Two of one class stand side by side, and so does a function of the network."""
    typed = f"compare {mine}:Median --set share=0.4 --also {mine}:Median {mine}:made --set "
    typed += f"share=0.9 weighted=false --scale smoke --tasks mnist --seeds 0 --out {tmp_path}/a"
    assert main([*typed.split(), "--workers", "1", "--skip-contract"]) == 0
    rows = pd.read_csv(tmp_path / "a" / "rows.csv")
    name = "made(share=0.9, weighted=false) (yours)"
    assert set(rows["method"]) == {METHOD, "Median (yours)", name}
    assert "# Median(share=0.4) beside" in (tmp_path / "a" / "report.md").read_text()
    ends = rows[rows["metric"] == "validation_acc"].set_index("method")["value"]
    net = nn.Linear(1, 1)
    own = load(f"{mine}:Median")
    assert ends.nunique() == 3 and Given(own(share=0.4)).name == "Median(share=0.4)"
    assert Given(load(f"{mine}:made"), settings={"share": "0.9"}).method(net).share == 0.9
    with pytest.raises(SettingsError, match="no setting is called 'x'; there are: share, weighted"):
        Given(load(f"{mine}:made"), settings={"x": "1"}).method(net)
    with pytest.raises(SettingsError, match="to change some, give its class"):
        Given(own(), settings={"share": "0.9"})


def test_seeds_that_no_stored_method_has_are_refused_before_training(mine, tmp_path):
    with pytest.raises(SettingsError, match="the stored methods have 0 to 2: give --seeds among"):
        compare(f"{mine}:Median", **SMALL | dict(seeds=(900,)), out=tmp_path)


def test_a_method_of_a_stored_ones_name_has_a_row_of_its_own(mine, tmp_path):
    mine.write_text(MINE.replace("class Median", "class FedAvg"))
    compare(f"{mine}:FedAvg", **SMALL, out=tmp_path / "a")
    lines = (tmp_path / "a" / "report.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith(("| FedAvg |", "| FedAvg (yours) |"))]
    assert len({row.partition(" | ")[0] for row in rows}) == 2 and len(set(rows)) == len(rows)


def test_two_at_once_are_no_half_comparison(mine, tmp_path):
    yours = Yours(Given(load(f"{mine}:Median")), tmp_path)
    cfg = yours.settings("smoke", tasks=("mnist",))
    with claimed(yours.folder(cfg, [0]), folder=True), pytest.raises(Busy):
        yours.measure(cfg, [0], workers=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py:Median", "there is no file"),
        ("{mine}:Nope", "has nothing called 'Nope'; it has Median, Needs, Broken, Shrinks"),
        ("{mine}", "FILE.py:CLASS"),
        ("no.such.module:Median", "cannot be imported"),
        ("{mine}:few", "is no Method"),
        ("{mine}:dataclass", "ran on no task"),
        ("{mine}:wrong", "which is no Method"),
        ("{mine}:Needs", "needs pull; say it by --set pull=VALUE"),
        ("{mine}:Broken", "it has to be one number"),
        ("{mine}:Slips", "KeyError: 'b' (mine.py, line 38: return uploads[0] * {}[\"b\"])"),
        ("{mine}:Bare", "Bare has the setting pull and is no dataclass; write @dataclasses"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(name, words, mine, tmp_path):
    with pytest.raises(SettingsError, match=re.escape(words)):
        compare(name.format(mine=mine), **SMALL, out=tmp_path / "b")


def test_a_method_that_breaks_its_contract_does_not_train_unless_it_is_told_to(
    mine, tmp_path, capsys, monkeypatch
):
    place = tmp_path / "f"
    typed = f"compare {mine}:Shrinks --scale smoke --tasks mnist --seeds 0 --workers 1".split()
    typed += ["--out", str(place)]
    with monkeypatch.context() as patch:
        patch.setattr(Yours, "measure", None)  # it is not called
        assert main(typed) == 1
    told = capsys.readouterr()
    assert "the contract of Shrinks, 17 promises" in told.out
    assert "ContractError: Shrinks breaks 3 of 17 promises" in told.err
    assert "\n- equal_uploads: where all devices send the same" in told.err
    assert "add --skip-contract plain_sgd nothing equal_uploads" in told.err
    assert not (place / "report.md").exists()
    assert main([*typed, "--skip-contract"]) == 0
    told = capsys.readouterr().out
    assert "At smoke scale these numbers mean nothing" in told
    assert "MNIST, accuracy on own classes" in told and "report.html" in told
    assert main([*typed, "--rates", "x"]) == 1 and "give numbers" in capsys.readouterr().err
    assert main([*typed, "--set", "x"]) == 1 and "write x=VALUE" in capsys.readouterr().err
    assert main([*typed, "--device", "gpu"]) == 1 and "contract" not in capsys.readouterr().out
    for name in ("report.md", "report.html"):
        text = (place / name).read_text()
        assert "The contract was not checked." in text and "At smoke scale these numbers" in text
    some = ["--skip-contract", "plain_sgd", "nothing", "equal_uploads"]
    assert main([*typed, *some]) == 0
    assert "Shrinks keeps 14 promises" in (place / "report.md").read_text()
    assert main([*typed, *some[:-1]]) == 1 and "1 of 17 promises" in capsys.readouterr().err
    assert main([*typed, "--skip-contract", "all"]) == 1 and "leaves" in capsys.readouterr().err


def test_what_cannot_be_checked_is_said_and_no_failure(tmp_path, capsys):
    given = Given(lambda net: FairLGFedAvg())  # needs parts that the small network does not have
    cfg = EVERYWHERE.settings("smoke", tasks=("adult",))
    said = checked(given, cfg)
    assert said.startswith("The contract was not checked: it does not train on rows like those of")
    assert "has no parameters in own, adversary" in said and said in capsys.readouterr().out
    noisy = Given(
        FedAvg,
        lambda inputs, classes: nn.Sequential(
            nn.Linear(inputs, 4), nn.Dropout(0.5), nn.Linear(4, classes)
        ),
    )
    said = checked(noisy, cfg)
    assert "FedAvg keeps 14 promises" in said
    assert "not tested: lanes (" in said and "plain_sgd (" in said and "renaming (" in said


def test_a_task_that_fails_leaves_the_others(mine, tmp_path, capsys):
    @dataclass(frozen=True, kw_only=True)
    class Digits(FedAvg):
        def loss(self, local, batch):
            assert batch.x.shape[-1] == 784, "for digits alone"
            return super().loss(local, batch)

    with pytest.raises(SettingsError, match="for digits alone"):
        compare(Digits, **SMALL | dict(tasks=("adult",)), out=tmp_path / "c")
    lines = compare(
        FedAvg, net=f"{mine}:linear", **SMALL | dict(tasks=("mnist", "adult")), out=tmp_path / "d"
    )
    assert set(lines["task"]) == {"mnist", "adult"} and not lines.attrs["failed"]
    assert "leak_auc" not in set(lines["measure"])  # a network without features has no probe


def test_hours_that_are_over_leave_a_report_of_what_ran(tmp_path):
    compare(FedAvg, **SMALL | dict(tasks=("mnist", "adult")), out=tmp_path, hours=1e-9)
    assert "the time was up" in (tmp_path / "report.md").read_text()


def test_a_task_that_fails_is_said_at_the_end_and_by_the_exit_status(mine, tmp_path, capsys):
    mine.write_text(MINE.replace("return local.net(batch.x)", DIGITS_ALONE))
    typed = f"compare {mine}:Broken --scale smoke --tasks mnist,adult --seeds 0 --workers 1".split()
    assert main([*typed, "--out", str(tmp_path / "g")]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("left out: adult: ") and "for digits alone (mine.py, line" in last


def test_sentences_say_who_is_ahead_by_how_much_and_what_would_tell():
    seeds = range(5)
    index = pd.MultiIndex.from_product([["mnist"], ["x"], seeds], names=["task", "method", "seed"])

    def values(method, base, *noise):
        at = index.set_levels([method], level=1)
        column = [base + one for one in noise]
        return pd.DataFrame(dict.fromkeys(beside.AIMS, column), at)

    little = (0.1, -0.1, 0.0, 0.2, -0.2)
    others = pd.concat(
        [
            values("fedavg", 70, *little),
            values("mtl", 80.1, -0.2, 0.2, 0.1, -0.1, 0.0),
            values("lg_fedavg", 85, *little),
            values("local_only", 78, -3, 2, 0, 2, 4),
        ]
    )
    mine = values(METHOD, 80, 0.0, 0.1, -0.1, 0.0, 0.1)
    fedavg = beside.Beside(mine, others).lines.query("other == 'FedAvg'").set_index("measure")
    assert (fedavg["outcome"] == "ahead of").to_dict() == {
        **dict.fromkeys(("local_test_acc", "new_test_acc", "decile_acc"), True),
        **dict.fromkeys(("odds_gap", "leak_auc"), False),  # of a gap and of a leak less is better
    }
    mine = mine[["local_test_acc"]]
    lines = beside.Beside(mine.reindex(columns=[*beside.AIMS]), others).lines
    total, said = beside.sentences(lines)
    assert total == "**Of 4 comparisons**: ahead in 1, level in 1, behind in 1; 1 are open."
    assert said.startswith("**MNIST, accuracy on own classes**: ahead of FedAvg (by 10.0 points)")
    assert "level with MTL" in said and "behind LG-FedAvg (by 5.0 points)" in said
    assert "not told apart from local only (" in said and "seeds would tell" in said
    *_, many = beside.sentences(pd.concat([lines.assign(outcome="behind", other="x")] * 2))
    assert "behind all 8 others (by" in many


def test_of_variants_that_change_nothing_few_are_level_and_of_many_a_seed_more_would_tell():
    at = pd.MultiIndex.from_product([["mnist"], ["x"], range(3)], names=["task", "method", "seed"])

    def values(who):
        return pd.DataFrame({"local_test_acc": [80.0, 81.0, 79.5]}, at.set_levels([who], level=1))

    def among(many):
        others = pd.concat([values(f"{n} (yours)") for n in range(many)])
        mine = values(METHOD).reindex(columns=[*beside.AIMS])
        return beside.Beside(mine, others).lines

    few, many = among(2), among(10)
    assert set(few["outcome"]) == {"level with"} and few["needs"].isna().all()
    assert set(many["outcome"]) == {"not told apart from"} and set(many["needs"]) == {4}
    assert "not told apart from all 10 others (4 seeds would tell)" in beside.sentences(many)[1]


def test_an_adversary_gets_its_network_and_leaves_out_what_has_no_groups(tmp_path, capsys):
    @dataclass(frozen=True, kw_only=True)
    class Game(FADE):
        pass

    tasks = SMALL | dict(tasks=("mnist", "adult"), skip_contract=False)
    lines = compare(Game, **tasks, out=tmp_path / "h")
    assert set(lines["task"]) == {"adult"} and not lines.attrs["failed"]
    assert lines.attrs["left_out"] == ["mnist: this task has no groups"]
    assert "Devices share " in capsys.readouterr().out
    assert Given(Game).kin == "fade" and Given(FairLGFedAvg()).kin == "lg_fedavg_adv"
    assert Given(FedAvg).kin == ""
    with pytest.raises(SettingsError, match="no part that guesses the group"):
        SmallNet(3, 2)(torch.zeros(1, 3), watch=torch.relu)
