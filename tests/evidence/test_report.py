"""The papers' tables beside ours, the counts and the figures."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lgfed_core import plotting
from lgfed_core.colours import METHOD
from lgfed_core.errors import ResultsError
from lgfed_core.evidence import power, printed as published, records as results, report, scoreboard
from lgfed_core.evidence.display import readable
from lgfed_core.papers.lgfedavg import communication
from lgfed_core.papers.printed import TABLES, printout
from lgfed_core.paths import PAPER
from toy import page, stored_row

FRECHET, TABLE6 = "cgau_table1_frechet", "lgfedavg_v2_table6_mnist"
TABLE8, TABLE1 = "lgfedavg_v2_table8_cifar10", "lgfedavg_v2_table1_cifar10"
IDS = {"classes_per_device": 2, "method": "lg_fedavg", "fedavg_rounds": 800, "lg_rounds": 100}


def tidy(values, table=TABLE6, **changes) -> pd.DataFrame:
    """A row per value, seeds from 0; printed there: local test 98.54 ± 0.05, new 98.17 ± 0.05."""
    usual = dict(protocol="as_released", selection="best_test", metric="local_test_acc")
    row = stored_row(table=table, **IDS | usual | changes)
    return pd.DataFrame([row | {"seed": n, "value": v} for n, v in enumerate(values)])


@pytest.fixture
def folder(tmp_path):
    """LG 800+100 at two classes, both protocols; local test agrees, new test is far too low."""
    rows = [
        tidy([98.45, 98.50, 98.55]),
        tidy([98.2, 98.3, 98.1], selection="last"),
        tidy([90.0, 90.2, 89.8], metric="new_test_acc"),
        tidy([97.7, 97.8, 97.9], protocol="as_described", selection="best_val"),
        tidy([56_824_000_000.0] * 3, metric="params_communicated"),
    ]
    results.record("lgfedavg.mnist", pd.concat(rows), tmp_path)
    return tmp_path


def line(table: pd.DataFrame, **where) -> pd.Series:
    ((_, found),) = table[(table[list(where)] == pd.Series(where)).all(axis=1)].iterrows()
    return found


# --- the papers' numbers ---------------------------------------------------------------------


def test_every_file_of_the_papers_is_declared_whole():
    chapters_own = {"claims", "cgau_text_claims"}
    files = {path.stem for path in PAPER.glob("*.csv")} - chapters_own
    assert files == set(TABLES)
    for name, spec in TABLES.items():
        printed = pd.read_csv(PAPER / f"{name}.csv")
        read = {*spec.ids, *(m.name for m in spec.metrics), *(m.sd for m in spec.metrics)}
        assert set(printed.columns) - {"note"} == read - {None}
        assert not printed.duplicated(list(spec.ids)).any()
        numbers = printed[[m.name for m in spec.metrics]]
        assert len(published.cells(spec)) == numbers.count().sum()
        assert not published.cells(spec).duplicated(["row", "metric"]).any()


def test_cells_carry_value_deviation_and_words():
    cells = published.cells(TABLES[TABLE6])
    assert len(cells) == 35 * 3
    cell = line(cells, **IDS, metric="new_test_acc")
    assert cell["row"] == "2 classes, LG-FedAvg, 800 + 100 rounds"
    assert cell[["paper", "paper_sd", "runs"]].tolist() == [98.17, 0.05, 10]
    assert np.isnan(line(cells, **IDS, metric="params_communicated")["paper_sd"])


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (IDS | {"method": "fedavg", "lg_rounds": 0}, "2 classes, FedAvg, 800 rounds"),
        ({"dataset": "mnist", "method": "local_only", "lg_rounds": 0}, "MNIST, local only"),
        ({"method": "fedprox", "finetune_fraction_C": 0.1}, "FedProx, C = 0.1"),
        ({"method": "dann", "target_users": float("nan"), "task": "A->D"}, "DANN, A->D"),
        ({"shuffle_proportion": 0.2}, "shuffled 0.2"),
    ],
)
def test_a_line_in_words(ids, words):
    assert published.row_name(ids) == words


def test_communication_agrees_wherever_the_formula_does(tmp_path):
    """Our counts, put in as results, are judged as `counts` judges them."""
    counted = communication.recompute_tables()
    counted = counted[counted["table"].isin([TABLE6, TABLE8, TABLE1])]
    row = stored_row(protocol="as_released", selection="best_test", metric="params_communicated")
    rows = counted.assign(value=counted["computed"].astype(float), seed=0, **row)
    keep = ["table", *IDS, *results.load(folder=tmp_path).columns.drop("table")]
    # Table 1's lines come with Table 8's, but for MTL
    own = (rows["table"] != TABLE1) | (rows["method"] == "mtl")
    results.record("all", rows.loc[own, keep], tmp_path)
    stored = results.load("all", tmp_path)
    for name in (TABLE6, TABLE8, TABLE1):
        found = report.table(TABLES[name], protocol="as_released", rows=stored)
        found = found.query("metric == 'params_communicated' and selection == 'best_test'")
        expected = counted.loc[counted["table"] == name, "matches"]
        assert (found["verdict"] == np.where(expected, "reproduced", "differs")).all()
    assert found["verdict"].tolist().count("differs") == 1  # MTL of Table 1


# --- comparison ------------------------------------------------------------------------------


def test_nothing_run_says_so(tmp_path):
    found = report.table(TABLES[TABLE6], folder=tmp_path)
    assert len(found) == 35 * 3 * 4  # two protocols, each at its selection and at the last round
    assert set(found["seeds"]) == {0}
    counts = found["metric"] == "params_communicated"
    vague = found["row"].eq("4 classes, local only") & found["metric"].eq("new_test_acc")
    assert set(found.loc[~counts & ~vague, "verdict"]) == {"not yet run"}
    assert set(found.loc[vague, "verdict"]) == {"out of reach"}, "43.15 +- 16.41"
    assert found.loc[~counts, "ours"].isna().all()
    assert set(found.loc[counts, "verdict"]) == {"reproduced"}, "they follow from the budgets"
    said = report.text(found)
    assert "5.572e10 (formula)" in said and said.count("not yet run") == 2 * (2 * 35 - 1)


def test_what_mtl_sends_follows_from_no_formula(tmp_path):
    found = report.table(TABLES[TABLE1], folder=tmp_path)
    counts = found[found["metric"] == "params_communicated"].set_index("row")["verdict"]
    assert set(counts["MTL, 1800 rounds"]) == {"not yet run"}
    assert set(counts.drop("MTL, 1800 rounds")) == {"reproduced"}
    assert communication.by_formula("cifar10", "fedavg", 1800, 0) == 1800 * 64_102 * 110


def test_ours_stand_beside_the_papers(folder):
    found = report.table(TABLES[TABLE6], folder=folder)
    best = line(found, **IDS, metric="local_test_acc", selection="best_test")
    numbers = best[["ours", "ours_sd", "seeds", "difference"]].tolist()
    assert numbers == pytest.approx([98.5, 0.05, 3, -0.04])
    assert best["low"] < -0.04 < best["high"] < 1.0 == best["margin"]
    assert best["verdict"] == "reproduced"
    last = line(found, **IDS, metric="local_test_acc", protocol="as_released", selection="last")
    assert last["ours"] == pytest.approx(98.2)
    assert line(found, **IDS, metric="new_test_acc", selection="best_test")["verdict"] == "differs"
    counted = line(found, **IDS, metric="params_communicated", selection="best_test")
    assert counted["verdict"] == "reproduced"
    other = found[(found[list(IDS)] != pd.Series(IDS)).any(axis=1)]
    other = other[other["metric"] != "params_communicated"]
    assert set(other["verdict"]) == {"not yet run", "out of reach"}


def test_a_verdict_that_hangs_on_what_a_deviation_is_over_is_none(tmp_path):
    spec = TABLES["lgfedavg_table4_adult_fairness"]  # FedAvg, i.i.d.: accuracy 83.7 +- 3.1
    ids = dict(method="fedavg", split="iid", selection="last", metric="class_acc")
    for far, expected in ((0.0, "reproduced"), (2.0, "inconclusive"), (9.0, "differs")):
        values = [83.6 + far, 83.7 + far, 83.8 + far]
        rows = tidy(values, spec.name).drop(columns=list(IDS)).assign(**ids)
        found = report.table(spec, protocol="as_released", rows=rows)
        line = found[found["ours"].notna()].iloc[0]
        assert line["verdict"] == expected, far
        assert (line["why"] == power.VAGUE) == (far == 2.0)


def test_one_protocol_alone(folder):
    found = report.table(TABLES[TABLE6], protocol="as_described", folder=folder)
    assert set(found["protocol"]) == {"as_described"}
    assert set(found["selection"]) == {"best_val", "last"}
    cell = line(found, **IDS, metric="local_test_acc", selection="best_val")
    assert cell["ours"] == pytest.approx(97.8)


def test_short_runs_are_never_judged(tmp_path):
    results.record("lgfedavg.mnist", tidy([98.5, 98.5, 98.6], scale="quick"), tmp_path)
    cell = dict(**IDS, metric="local_test_acc", selection="best_test")
    quick = line(report.table(TABLES[TABLE6], "quick", folder=tmp_path), **cell)
    assert quick["seeds"] == 3
    assert quick["verdict"] == "quick scale, not judged"
    assert line(report.table(TABLES[TABLE6], folder=tmp_path), **cell)["verdict"] == "not yet run"
    counts = scoreboard.scoreboard(TABLES.values(), tmp_path)
    assert counts.loc[counts["numbers"] == "measured", "reproduced"].sum() == 0


def test_quick_lines_fill_in_where_no_other_is(folder):
    both = pd.concat([tidy([50.0], scale="quick"), tidy([60.0], scale="quick", fedavg_rounds=400)])
    results.record("lgfedavg.mnist", both, folder)
    found = report.at_hand(TABLES[TABLE6], folder=folder)
    cell = {"classes_per_device": 2, "metric": "local_test_acc", "selection": "best_test"}
    assert line(found, **cell, fedavg_rounds=800, lg_rounds=100)["verdict"] == "reproduced"
    filled = line(found, **cell, fedavg_rounds=400)
    assert (filled["ours"], filled["scale"]) == (60.0, "quick")
    assert "60.00 (1)  -38.77 quick scale, not judged" in report.text(found)


def test_stand_in_data_never_count(tmp_path):
    spec, how = TABLES[FRECHET], dict(protocol="as_described", selection="last")
    how |= dict(shuffle_proportion=0, metric="average_client_frechet_distance")
    rows = tidy([3.0] * 3, FRECHET, **how).drop(columns=list(IDS))
    cell = {"shuffle_proportion": 0, "protocol": "as_described"}
    printed = line(report.table(spec, folder=tmp_path), **cell)["paper"]
    rows["value"] = printed
    results.record("cgau.audio", rows.assign(stand_in="other sounds"), tmp_path)
    found = line(report.table(spec, folder=tmp_path), **cell)
    assert found["verdict"] == "on stand-in data (other sounds)"
    counts = scoreboard.scoreboard(TABLES.values(), tmp_path).set_index("paper").loc["CGAU"]
    assert (counts["reproduced"], counts["on stand-in data"]) == (0, 1)
    assert "on stand-in data" in page("scoreboard").numbers(folder=tmp_path)
    results.record("cgau.audio", rows.assign(stand_in=""), tmp_path)  # the real data win
    found = line(report.table(spec, folder=tmp_path), **cell)
    assert (found["verdict"], found["seeds"]) == ("reproduced", 3)


def test_table_8_fills_table_1(tmp_path):
    rows = [
        tidy([90.0, 91.0], TABLE8, fedavg_rounds=1800),
        tidy([80.0, 81.0], TABLE8, fedavg_rounds=1800, classes_per_device=3),
    ]
    results.record("lgfedavg.cifar10", pd.concat(rows), tmp_path)
    found = report.table(TABLES[TABLE1], folder=tmp_path).query("seeds > 0")
    assert found[["fedavg_rounds", "ours"]].values.tolist() == [[1800, 90.5]]


def test_two_values_for_one_cell_are_refused(folder):
    results.record("lgfedavg.mnist", tidy([98.0]).assign(kind="other"), folder)
    with pytest.raises(ResultsError, match="seed 0 has several values for 2, lg_fedavg, 800, 100"):
        report.table(TABLES[TABLE6], folder=folder)


@pytest.mark.parametrize("call", [("huge",), ("paper", "as_dreamt")])
def test_unknown_names_are_refused(call):
    with pytest.raises(ResultsError):
        report.table(TABLES[TABLE6], *call)


# --- what people see -------------------------------------------------------------------------


def test_display_is_compact_html(folder):
    page = report.display(report.table(TABLES[TABLE6], folder=folder))
    assert page._repr_html_() == page
    shown = re.sub(r"<small>.*?</small>", "", page.replace("&nbsp;", " "))  # what cells open on
    shown = re.sub(r"<td [^>]*>", "<td>", shown)
    shown = re.sub(r"</details>", "<br>", re.sub(r"<details.*?>|</?summary>", "", shown))
    ours = "98.50 ± 0.05 (3)<br>-0.04 ✓ reproduced<br>last round 98.20"
    assert f"98.54 ± 0.05</td><td>{ours}" in shown
    assert "5.682e10 (3)<br>+0.00 ✓ reproduced" in shown
    assert page.count("<tr>") == 3 * (1 + 35)
    alone = report.display(report.table(TABLES[TABLE6], protocol="as_described", folder=folder))
    assert "as released" not in alone
    assert "97.80&nbsp;±&nbsp;0.10 (3)</summary>" in alone and ">-0.74 ✓ reproduced" in alone
    escaped = report.display(report.table(TABLES["fade_table1_office"]))
    assert "A-&gt;D" in escaped and "A->D" not in escaped


def test_text_is_the_same_in_columns(folder):
    found = report.table(TABLES[TABLE6], folder=folder)
    lines = report.text(found[found["classes_per_device"] == 2]).splitlines()
    head = re.split("  +", lines[0])
    assert head[:2] == ["local test", "paper"]
    assert head[2:] == ["as released, best on test", "as described, best on validation"]
    (said,) = (t for t in lines if "98.54" in t)
    assert said.startswith("2 classes, LG-FedAvg, 800 + 100 rounds  98.54 ± 0.05  98.50 ± 0.05 (3)")
    assert said.split("  ")[3] == "-0.04 ✓ reproduced"
    (other,) = (t for t in lines if "98.77" in t)
    assert other.count("not yet run") == 2
    visda = report.text(report.table(TABLES["fade_table2_visda"], protocol="as_described"))
    assert "as described, last round" in visda.splitlines()[0]


def test_scoreboard_counts_each_printed_number_once(folder):
    counts = scoreboard.scoreboard(TABLES.values(), folder)
    kinds = ["reproduced", "differs", "inconclusive", "out of reach", "on stand-in data"]
    kinds += ["not yet run"]
    assert (counts[kinds].sum(axis=1) == counts["printed"]).all()
    printed = sum(len(published.cells(spec)) for spec in TABLES.values())
    assert counts["printed"].sum() == printed
    lg = counts[counts["paper"] == "LG-FedAvg"].set_index("numbers")
    # as_released alone counts, so the described protocol's local test adds nothing
    assert lg.loc["measured", ["reproduced", "differs"]].tolist() == [1, 1]
    sent = lg.loc["counted", ["reproduced", "differs", "not yet run"]]
    assert sent.tolist() == [74, 0, 6]  # MTL's, and zeros of rows that have not run
    head, rule, *lines = page("scoreboard").numbers(folder=folder).splitlines()
    assert head.startswith("| numbers | LG-FedAvg, measured | LG-FedAvg, counted | CGAU")
    assert {line.count("|") for line in (head, rule, *lines)} == {6}
    found = {line.split(" | ")[0].strip("| "): line.split(" | ")[1] for line in lines}
    assert list(found) == [
        *("printed", "reproduced", "of these distinct", "of these told apart"),
        *("of these before 3 seeds", "differs", "inconclusive", "out of reach", "not yet run"),
    ]
    # reproduced, but beside nothing to be told from
    assert [found[name] for name in list(found)[1:8]] == ["1", "1", "0", "0", "1", "0", "2"]


@pytest.mark.slow
def test_a_report_prints_tables_and_counts():
    said = "\n".join(printout("cgau"))
    assert "== CGAU, Table 1" in said
    assert "1784.40" in said
    assert "LG-FedAvg, Table" not in said
    assert "CGAU measured" in said and "LG-FedAvg measured" not in said  # the counts
    with pytest.raises(ResultsError, match="lgfedavg, cgau, fade"):
        next(printout("unheard-of"))


# --- figures ---------------------------------------------------------------------------------


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_curves_show_mean_and_interval_over_seeds(ax):
    values = {0: [1.0, 2.0, 6.0], 10: [4.0, 5.0, 9.0]}
    history = pd.DataFrame(
        {"round": x, "seed": n, "new_test_acc": v, "method": "fedavg"}
        for x, found in values.items()
        for n, v in enumerate([*found, np.nan])
    )
    plotting.curves(history, ax=ax)
    (drawn,) = ax.get_lines()
    assert drawn.get_xydata().tolist() == [[0, 3], [10, 6]]
    assert drawn.get_color() == METHOD["fedavg"][0]
    assert drawn.get_label() == "FedAvg"
    expected = stats.t.interval(0.95, 2, 3.0, stats.sem(values[0]))
    (band,) = ax.collections
    edge = band.get_paths()[0].vertices
    edge = edge[edge[:, 0] == 0, 1]
    assert (edge.min(), edge.max()) == pytest.approx(expected)


def test_curves_of_one_seed_have_no_band(ax):
    history = pd.DataFrame({"epoch": [1, 2], "loss": [3.0, 2.0], "kind": ["new", "new"]})
    plotting.curves(history, "epoch", "loss", "kind", ax)
    assert len(ax.get_lines()) == 1
    assert not ax.collections
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "loss")


def test_methods_that_meet_in_a_table_look_different():
    for spec in TABLES.values():
        if "method" in spec.ids:
            methods = published.cells(spec)["method"].unique()
            found = plotting.looks(methods)
            assert len(set(found.values())) == len(methods)
    spare = plotting.looks(["new", "fedavg", "newer"])
    assert len(set(spare.values())) == 3


def test_the_paper_is_hollow_and_ours_filled_within_the_margin(folder, ax):
    found = report.table(TABLES[TABLE6], folder=folder)
    found = found[(found[list(IDS)] == pd.Series(IDS)).all(axis=1)]
    plotting.paper_vs_ours(found, "local_test_acc", ax)
    drawn = {c.get_label(): c.lines[0] for c in ax.containers if c.get_label()[0] != "_"}
    assert list(drawn) == ["paper", "ours, as released (3 seeds)", "ours, as described (3 seeds)"]
    assert drawn["paper"].get_xdata() == pytest.approx([98.54])
    assert drawn["paper"].get_markerfacecolor() == "white"
    ours = drawn["ours, as released (3 seeds)"]
    assert ours.get_xdata() == pytest.approx([98.50])
    assert ours.get_markerfacecolor() == ours.get_color()
    (band,) = ax.patches
    assert (band.get_x(), band.get_width()) == pytest.approx((97.54, 2.0))
    (label,) = ax.get_yticklabels()
    assert label.get_text() == "2 classes, LG-FedAvg, 800 + 100 rounds"
    ax.clear()  # far values are written at the edge
    plotting.paper_vs_ours(found, "new_test_acc", ax, xlim=(97, 99))
    assert [t.get_text() for t in ax.texts] == ["← 90.0"]
    assert ax.get_xlim() == (97, 99)


def test_style_ends_with_its_block():
    before = plt.rcParams["font.size"]
    with plotting.style():
        assert plt.rcParams["axes.spines.top"] is False
        assert plt.rcParams["font.size"] == 9
    assert plt.rcParams["font.size"] == before


def test_margin_of_one_printed_number():
    alone = dict(metric="local_test_acc", method="local_only")
    assert published.margin(TABLES[TABLE6], **alone, classes_per_device=10) == 1.0
    assert published.margin(TABLES[TABLE1], **alone) == pytest.approx(4.28)
    name = "average_client_frechet_distance"
    sounds = published.margin(TABLES[FRECHET], name, shuffle_proportion=0)
    assert sounds == pytest.approx(0.02 * published.cells(TABLES[FRECHET])["paper"][0])
    with pytest.raises(ResultsError, match="has 5 numbers 'new_test_acc'"):
        published.margin(TABLES[TABLE6], "new_test_acc", method="local_only")
    with pytest.raises(ResultsError, match="has no ids nonsense"):
        published.margin(TABLES[TABLE6], "new_test_acc", nonsense=1)


def test_a_comma_at_the_end_of_each_line_moves_no_column(tmp_path):
    spec = TABLES[TABLE6]
    head, *lines = (PAPER / f"{spec.name}.csv").read_text().splitlines()
    (tmp_path / f"{spec.name}.csv").write_text("\n".join([head, *(f"{one}," for one in lines)]))
    assert published.cells(spec, tmp_path).equals(published.cells(spec))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: None, r"table6_mnist\.csv is missing"),
        (lambda raw: raw.replace(b"local_test_acc", b"acc", 1), "no column local_test_acc"),
        (lambda raw: b"", "cannot be read: No columns"),
        (lambda raw: b"\xff\xfe" + raw, "cannot be read: .*codec"),
        (lambda raw: raw + raw.splitlines(keepends=True)[3], "is there twice"),
        (lambda raw: raw.replace(b"98.2", b"982", 1), "is 982.* in line"),
        (lambda raw: raw.replace(b"98.2", b"good", 1), "is good in line"),
    ],
)
def test_a_damaged_file_of_printed_numbers_is_refused_by_name(tmp_path, damage, said):
    spec = TABLES[TABLE6]
    content = damage((PAPER / f"{spec.name}.csv").read_bytes())
    if content is not None:
        (tmp_path / f"{spec.name}.csv").write_bytes(content)
    with pytest.raises(ResultsError, match=said):
        published.cells(spec, tmp_path)


def test_a_table_has_no_names_of_the_code_and_no_digits_that_nobody_reads():
    table = pd.DataFrame(
        {"local_test_acc": [1.234567891], "in words": ["as_it_is"]}, index=[0.25]
    ).rename_axis("shuffle_proportion")
    page = readable(table.rename(index={0.25: "0.250000"}).to_html())
    for said in ("<th>local test</th>", "<th>shuffle proportion</th>", "<th>0.25</th>"):
        assert said in page
    assert "<td>1.235</td>" in page and "<td>as it is</td>" in page


@pytest.mark.parametrize("text", ["F1: l_k", "0.25", "1e-05", "2_000", "CGAU, rows kept"])
def test_words_and_short_numbers_stay(text):
    assert readable(f"<td>{text}</td>") == f"<td>{text}</td>"
