"""Are the tests awake? Faults are put into the code one at a time; some test has to notice each.

    python tests/mutants.py                # all, with a report; the exit status counts survivors
    python tests/mutants.py verdict        # those whose file has this in its name
    python tests/mutants.py --first 42     # those after the first 42

A mutant is a line that is wrong in a way that a person could have written. It is put into a copy of
the core in a temporary folder, and the tests of its file run on that. Not part of the suite.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FAIR, FRECHET = "tests/metrics/test_fairness.py", "tests/metrics/test_frechet.py"
VERDICT, SHARES = "tests/evidence/test_verdict.py", "tests/partition/test_label_skew.py"
CONTRACT = "tests/methods/test_contract.py -k FedAvg"
DIGESTS = "tests/engine/test_digests.py"
PRIVATE, WORTH = "tests/methods/test_privacy.py", "tests/evidence/test_power.py"
CLUSTERS = "tests/partition/test_feature_clusters.py"
DAMAGE, SAVED = "tests/engine/test_damage.py -k ", "tests/engine/test_checkpoint.py -k "
COLLAPSE, CLAIMS = "tests/evidence/test_collapse.py", "tests/evidence/test_claims.py"
STEPS, GOALS = "tests/evidence/test_seed_steps.py", "tests/fill/test_goals.py"
FAR, GRAPHS = "tests/engine/test_divergence.py -k far", "tests/engine/test_graphs.py"
MUTANTS: list[tuple[str, str, str, str]] = [  # file, what it says, what it is made to say, tests
    # losses
    ("methods/fedprox.py", "pull=self.mu", "pull=self.mu / 2", DIGESTS),
    ("engine/dual.py", "slope[0] -= self.pull", "slope[1] -= self.pull",
     "tests/engine/test_dual.py"),
    ("methods/mtl.py", "(1 - 1 / m) * (w - others)", "(w - others)", DIGESTS),
    ("methods/mtl.py", "+ w.square().sum()", "", DIGESTS),
    ("methods/adversary.py", "h.detach() - strength", "h.detach() + strength",
     "tests/methods/test_adversary.py"),
    ("methods/adversary.py", "means**power / power", "means**power",
     "tests/methods/test_adversary.py"),
    ("methods/adversary.py", "batch.mean(each**power) / power", "batch.mean(each) ** power / power",
     "tests/methods/test_fade.py"),
    ("methods/fade.py", "batch.mean(each * (batch.y >= 0))", "batch.mean(each)",
     "tests/methods/test_fade.py"),
    ("methods/fade.py", "chance >= self.opt_out", "chance < self.opt_out", DIGESTS),
    ("methods/fair.py", "task - strength *", "task + strength *", DIGESTS),
    ("methods/auxiliary.py", "known.sum().clamp(min=1e-6)", "len(known)",
     "tests/methods/test_auxiliary.py"),
    ("methods/qffl.py", "** self.q / (self.q + 1)", "** self.q",
     "tests/methods/test_successors.py"),
    ("methods/shot.py", "p = batch.mean(outputs.softmax(-1))", "p = outputs.softmax(-1).mean(0)",
     "tests/methods/test_adaptation.py"),
    ("methods/schedules.py", "** -0.75", "** -0.5", DIGESTS),
    # lanes on a device
    ("engine/stack.py", "self.round.fill_(round)", "pass", GRAPHS),
    ("engine/graphs.py", "self.written |= {whose} if found else set()", "", GRAPHS),
    ("engine/graphs.py", "self.written.add(whose)", "self.able = False", GRAPHS),
    ("engine/batched.py", "self.tests.clear()", "", GRAPHS),
    ("engine/divergence.py", "for vectors in seen]).isfinite().all()",
     "for vectors in seen]).isfinite().any()", "tests/engine/test_divergence.py"),
    ("engine/round_plan.py", "self.soon.pop((round, *jobs), None)",
     "next(iter(self.soon.values()), None)", "tests/engine/test_device.py"),
    # merges
    ("methods/interface.py", "rows / rows.sum()", "rows / rows.max()", CONTRACT),
    ("methods/interface.py", "uploads.mean(0) if weights", "uploads.sum(0) if weights", CONTRACT),
    ("methods/cgau.py", "rows.clamp(max=self.cap)", "rows.clamp(min=self.cap)", DIGESTS),
    ("methods/cgau.py", "trained.before + each * (own - trained.before)", "own",
     DIGESTS),
    ("methods/interface.py", "beta * average + (1 - beta) * before", "average", DIGESTS),
    ("engine/rounds.py", "weights = weights_of(method, rows)",
     "weights = weights_of(method, rows.flip(0))", CONTRACT),
    ("engine/rounds.py", "and slot not in out]", "]", CONTRACT),
    ("engine/divergence.py", 't["personal"][run, device] = engine.before[slot]\n        for', "for",
     CONTRACT),
    ("engine/participation.py", "fraction * devices + 1e-9)", "fraction * devices)",
     "tests/engine/test_loop.py"),
    # privacy
    ("methods/privacy.py", ".clamp(max=1)", "", PRIVATE),
    ("methods/privacy.py", "self.noise * self.clip * noise", "self.noise * noise", PRIVATE),
    # partitions
    ("partition/label_skew.py", 'np.argsort(y, kind="stable"), shards',
     "np.arange(len(y)), shards", SHARES),
    ("partition/label_skew.py", "shards[i] = np.append(shards[i], row)", "pass", SHARES),
    ("partition/label_skew.py", "len(rows) - 1) if len(rows) > 1", "len(rows)) if len(rows) > 1",
     SHARES),
    ("partition/label_skew.py", "donors.any()", "not donors.any()", SHARES),
    ("partition/label_skew.py", "counts.sum(0) > 1",
     "counts.sum(0) > 0", SHARES),
    # measures
    ("metrics/fairness.py", "ones * (ones + 1) / 2", "ones * ones / 2", FAIR),
    ("metrics/fairness.py", "return max(_gap(", "return sum(_gap(", FAIR),
    ("metrics/fairness.py", "max(area, 1 - area)", "area", FAIR),
    ("metrics/frechet.py", "/ np.sqrt(len(x) - 1)", "/ np.sqrt(len(x))", FRECHET),
    ("metrics/frechet.py", "/ (m - 1)  # S_2", "/ m", FRECHET),
    # verdicts
    ("evidence/comparison.py", "[2 * paper_sd, floor]", "[paper_sd, floor]", VERDICT),
    ("evidence/comparison.py", "low and high <= most", "low or high <= most", VERDICT),
    ("evidence/comparison.py", "(margin, sd**2 / (runs - 1)", "(margin, sd**2 / runs", VERDICT),
    ("evidence/verdict.py", "np.arange(p.size, 0, -1)", "p.size", VERDICT),
    ("evidence/verdict.py", "np.maximum.accumulate(p[order]", "(p[order]", VERDICT),
    ("evidence/verdict.py", "len(tests) * min(", "min(", VERDICT),
    ("evidence/verdict.py", "max(_above(mean + margin", "min(_above(mean + margin", VERDICT),
    ("evidence/seed_steps.py", "(true / seeds if seeds else far)", "far",
     STEPS),
    # the second batch: verdicts,
    ("evidence/comparison.py", "DIFFERS if high < least or low > most", "DIFFERS if high < most",
     VERDICT),
    ("evidence/comparison.py", "if ours.size == 1:", "if ours.size == 0:", VERDICT),
    ("evidence/comparison.py", "runs is None or runs < 2", "runs is None", VERDICT),
    ("evidence/comparison.py", "a**2 / df_a + b**2 / df_b", "a**2 / df_b + b**2 / df_a", VERDICT),
    ("evidence/comparison.py", ", 0.975)", ", 0.95)", VERDICT),
    ("evidence/verdict.py", "1 / max(shift.size, 1) + shared", "1 / max(shift.size, 1)", VERDICT),
    ("evidence/verdict.py", "p, against = _above(mean - by", "p, against = _above(mean", VERDICT),
    ("evidence/verdict.py", "min(1.0, 2 * beyond)", "min(1.0, beyond)", VERDICT),
    ("evidence/verdict.py", "return AGREE**df if mean", "return 0.0 if mean", VERDICT),
    ("evidence/verdict.py", "[p < ALPHA, against < ALPHA]", "[against < ALPHA, p < ALPHA]",
     VERDICT),
    ("evidence/verdict.py", "shift[~np.isnan(shift)]", "np.nan_to_num(shift)", VERDICT),
    ("evidence/verdict.py", "max(tests, key=lambda t: t.p)", "min(tests, key=lambda t: t.p)",
     VERDICT),
    ("evidence/power.py", "return least <= comparison", "return least >= comparison", WORTH),
    ("evidence/power.py", "            return many", "            return seeds", WORTH),
    ("evidence/power.py", "sd / np.sqrt(many), many - 1", "sd / np.sqrt(seeds), seeds - 1", WORTH),
    ("evidence/power.py", "if names != mine]", "]", WORTH),
    ("evidence/power.py", "interval[0] <= 0 <= interval[1]", "interval[0] <= 0", WORTH),
    ("evidence/power.py", "sorted((printed / 2, 2 * printed))", "(printed / 2, 2 * printed)",
     WORTH),
    ("evidence/power.py", "b.reindex(a.index)", "b.to_numpy()", WORTH),
    # partitions,
    ("partition/feature_clusters.py", "PCA(2, svd_solver=\"covariance_eigh\").fit(x[fit])",
     "PCA(2, svd_solver=\"covariance_eigh\").fit(x)", CLUSTERS),
    ("partition/feature_clusters.py", "plane[mine & fit]", "plane[mine]", CLUSTERS),
    ("partition/feature_clusters.py", "len(rows) - 1)]] = VALIDATION", "len(rows))]] = VALIDATION",
     CLUSTERS),
    ("partition/feature_clusters.py", "rng.permutation(drawn)", "drawn", CLUSTERS),
    ("partition/feature_clusters.py", "(y == label) & ~test", "y == label", CLUSTERS),
    ("partition/feature_clusters.py", "len(np.unique(points, axis=0)) <", "len(points) <",
     CLUSTERS),
    ("partition/label_skew.py", "if classes * devices % len(labels)", "if devices % len(labels)",
     SHARES),
    ("partition/label_skew.py", "order = np.flatnonzero(wanted == c), rng.permutation(per_class)",
     "order = np.flatnonzero(wanted == c), np.arange(per_class)", SHARES),
    # privacy accounting,
    ("methods/privacy.py", "apart, 1.0, uploads", "apart, 0.1, uploads", PRIVATE),
    ("methods/privacy.py", "spent(self.noise / apart", "spent(self.noise * self.clip / apart",
     PRIVATE),
    ("methods/privacy.py", "spent(self.noise / apart", "spent(self.noise", PRIVATE),
    ("methods/privacy.py", "(noise, sampling, times)", "(noise, sampling, 1)", PRIVATE),
    ("methods/privacy.py", "found if found > LARGE else float(tight",
     "found if found < LARGE else float(tight", PRIVATE),
    ("methods/privacy.py", "0.0 if times == 0 else float", "0.0 if noise == 0 else float", PRIVATE),
    ("methods/privacy.py", "return before + change +", "return upload +", PRIVATE),
    # checkpoints
    ("engine/checkpoint.py", "json.dumps([identity, facts, said])", "json.dumps([identity, said])",
     DAMAGE + "all_that_a_file_says"),
    ("engine/checkpoint.py", "json.dumps([identity, facts, said])", "json.dumps([identity, facts])",
     DAMAGE + "all_that_a_file_says"),
    ("engine/checkpoint.py", "json.dumps([identity, facts, said])", "json.dumps([facts, said])",
     DAMAGE + "all_that_a_file_says"),
    ("engine/checkpoint.py", "total.update(_bytes(tensors[name]))", "pass",
     DAMAGE + "all_that_a_file_says"),
    ("engine/checkpoint.py", "if last:", "if False:", DAMAGE + "offered_and_used"),
    ("engine/checkpoint.py", "os.link(path, previous(path))", "pass", DAMAGE + "offered_and_used"),
    ("engine/checkpoint.py", "path = older\n", "return None\n", DAMAGE + "offered_and_used"),
    ("engine/checkpoint.py", "raise ValueError(\"it has no checksum\")", "pass",
     DAMAGE + "missing_fact"),
    ("engine/checkpoint.py", "check(tensors, facts)", "pass", DAMAGE + "do_not_fit"),
    ("engine/checkpoint.py", "if made_by == identity:", "if True:", SAVED + "another_run"),
    ("engine/checkpoint.py", "if v != getattr(usual, k)}", "if k == getattr(usual, k)}",
     SAVED + "folders_of_their_own"),
    # and what goes too far
    ("engine/divergence.py", "if far > farthest", "if far >= farthest", FAR),
    ("engine/divergence.py", "uploads.double() - received.double()", "uploads - received", FAR),
    ("engine/divergence.py", "before[to_device(places(jobs)[0], before.device)] if",
     "before if", FAR),
    # the third batch: what a cell, a contrast and a claim are worth,
    ("evidence/power.py", "*comparison.ends(*print_, spec.pooled)}) > 1",
     "*comparison.ends(*print_, 1)}) > 1",
     "tests/evidence/test_report.py -k hangs"),
    ("evidence/power.py", "if open_ and not reachable(sd", "if not reachable(sd", WORTH),
    ("evidence/power.py", "found = wide if wide == narrow else open_", "found = wide", WORTH),
    ("evidence/collapse.py", "sd**2 / (sd**2 + (mean - guess) ** 2)",
     "sd**2 / (mean - guess) ** 2", COLLAPSE),
    ("evidence/collapse.py", "(runs * mean - fell * guess) / (runs - fell)", "mean", COLLAPSE),
    ("evidence/collapse.py", "(self.guess + self.mean) / 2", "self.mean", COLLAPSE),
    ("evidence/collapse.py", "pvalue < 0.05", "pvalue < 0", COLLAPSE),
    ("evidence/collapse.py", "rest, WIDE, most=WIDE)", "rest, WIDE)", COLLAPSE),
    ("evidence/collapse.py", "== verdict.REPRODUCED and not near)",
     "== verdict.REPRODUCED and near)",
     COLLAPSE),
    ("evidence/claims.py", "p, against = max(t.p for", "p, against = min(t.p for", CLAIMS),
    ("evidence/claims.py", "min(part.runs for part in parts), joined",
     "max(part.runs for part in parts), joined",
     CLAIMS),
    ("evidence/claims.py", 'lines["ran"] == 0, ["verdict"', 'lines["ran"] < 0, ["verdict"', CLAIMS),
    ("evidence/comparison.py", "theirs * np.linspace(0, 8, 161)", "theirs * np.zeros(1)", WORTH),
    ("evidence/seed_steps.py", "if step > seeds), None)", "if step >= seeds), None)", STEPS),
    ("evidence/seed_steps.py", "seeds * more / step * off**2", "0 * off**2", STEPS),
    ("evidence/seed_steps.py", "np.all(each, axis=0)", "np.any(each, axis=0)", STEPS),
    # what is worth running next,
    ("fill/ledger.py", "(piece.protocol, \"\")", "(\"\",)", GOALS),
    ("fill/ledger.py", "(times.sum() if whole else times.median())", "times.median()", GOALS),
    ("fill/goals.py", "max(0, done - line.seeds)", "0", GOALS),
    ("fill/goals.py", "line.paper_sd / np.sqrt(table.pooled)", "line.paper_sd", GOALS),
    # and losses again
    ("methods/fade.py", "label_smoothing=smoothing", "label_smoothing=0.0",
     "tests/methods/test_adaptation.py"),
    ("methods/shot.py", ") / share.clamp(min=1e-12)", ")", "tests/methods/test_adaptation.py"),
    ("methods/qffl.py", "** self.q / (self.q + 1)", "/ (self.q + 1)", DIGESTS),
    ("methods/cgau.py", "-(-seen // self.per)", "seen // self.per", "tests/methods/test_cgau.py"),
    ("engine/checks/losses.py", "- {*range(kinds)}",
     "- {*range(kinds + 1)}", "tests/engine/test_refused.py"),
    ("engine/dual.py", "push if training.nesterov else self.velocities", "self.velocities",
     "tests/engine/test_dual.py"),
    ("metrics/inversion.py", "SMALL * bias.abs().max()",
     "SMALL", "tests/metrics/test_inversion.py"),
    # embeddings, answers, lanes lifted,
    ("engine/checks/embeddings.py", "(input >= len(weight))", "(input > len(weight))",
     "tests/engine/test_layers.py"),
    ("engine/checks/embeddings.py", 'yield "test", data.test', 'yield "test", data.train',
     "tests/engine/test_layers.py"),
    ("engine/checks/methods.py", "0 <= pull < math.inf", "pull < math.inf",
     "tests/engine/test_method_checks.py"),
    ("engine/checks/methods.py", "isinstance(found, str | bytes) or", "",
     "tests/engine/test_method_checks.py"),
    ("engine/rounds.py", "batches - beta * (1 - beta**batches)", "batches - (1 - beta**batches)",
     "tests/methods/test_successors.py"),
    ("methods/perfedavg.py", "% 2 == odd", "% 2 == 0", "tests/methods/test_successors.py"),
    ("engine/sheltered.py", "{n: v.clone() for", "{n: v for", "tests/engine/test_sheltered.py"),
    ("methods/fednova.py", "(p @ far) * ", "", "tests/methods/test_successors.py"),
    ("engine/rounds.py", '_like(personal[r, who], keeps, method, "finish", "devices\' own")',
     "keeps",
     "tests/engine/test_method_checks.py"),
    ("engine/rounds.py", '_like(upload, given, treatment, "treat")', "given",
     "tests/engine/test_method_checks.py"),
    ("engine/checks/vmap.py", "if split.groups is not None", "if False",
     "tests/engine/test_method_checks.py tests/engine/test_steps.py"),
    # means over devices, partitions made by hand, measures of one group,
    ("engine/accuracy.py", ".nanmean(1)", ".mean(1)", "tests/engine/test_trackers.py"),
    ("partition/partition.py", "& (rows[:, 1:] >= 0)", "& (rows[:, 1:] > 0)", SHARES),
    ("partition/partition.py", "size.max() <= index.shape[1]", "size.max() <= len(index)", SHARES),
    ("metrics/fairness.py", "np.unique(group)) < 2", "np.unique(group)) < 1",
     "tests/test_misuse.py"),
    ("papers/parts.py", "- outcome.diverged.keys()", "",
     "tests/papers/test_contract.py -k diverged"),
    # what pages judge and show
    ("papers/fade/impairment/claims.py", "if len(parts) == len(rates)", "if parts",
     "tests/papers/fade/test_impairment.py"),
    ("papers/fade/impairment/claims.py", "(SHARE * gain", "(gain",
     "tests/papers/fade/test_impairment.py"),
    ("papers/fade/objects/stored.py", "kept[~kept.index.isin(lost(found).index)]", "kept",
     "tests/papers/fade/test_objects.py -k sweep"),
    ("papers/fade/digits/run.py", "dict(beta=1.0, weighted=False,", "dict(beta=0.1, weighted=True,",
     "tests/papers/fade/test_digits.py -k central"),
    ("papers/fade/objects/adaptation.py", "1 if alone else 2", "1",
     "tests/papers/fade/test_objects.py -k central"),
    ("papers/fade/objects/adaptation.py", "weight=cfg.weight / 2", "weight=cfg.weight",
     "tests/papers/fade/test_objects.py -k central"),
    ("papers/fade/objects/stored.py", "[known & ~twice]", "[known]",
     "tests/papers/fade/test_objects.py"),
    ("papers/cgau/cifar10/claims.py", "equivalent, 0.0, NO_GAIN)", "equivalent, 0.0, 4.0)",
     "tests/papers/cgau/test_cifar10.py -k slopes"),
    ("papers/cgau/cifar10/claims.py", "\", plain, cgau, greater", "\", cgau, plain, greater",
     "tests/papers/cgau/test_cifar10.py -k slopes"),
    ("papers/cgau/gains.py", "if np.isin(who.random", "if False and np.isin(who.random",
     "tests/papers/cgau/test_gains.py"),
    ("papers/lgfedavg/vqa/claims.py", 'found[found["long"] == longest]', "found",
     "tests/papers/lgfedavg/vqa/test_run.py -k long"),
    # answers
    ("evidence/answers.py", "+ [1.0] * missing", "", "tests/evidence/test_answers.py"),
    ("evidence/answers.py", "self.claim.answer.startswith(self.first) and", "",
     "tests/evidence/test_answers.py"),
    ("evidence/answers.py", "if self.claim.together", "if False",
     "tests/evidence/test_answers.py"),
    ("evidence/answers.py", "claimed < untold", "claimed > untold",
     "tests/evidence/test_answers.py"),
    ("papers/questions.py", "if told.stands() else", "if True else",
     "tests/papers/test_questions.py"),
    ("papers/guards.py", "return False", "return True", "tests/papers/test_page_guards.py"),
    ("papers/answer_box.py", "if not one.stands()", "if one.stands()",
     "tests/papers/test_answer_box.py"),
    # a method of one's own
    ("testing/server.py", "+ chance + 4", "+ 10**9 + 4",
     "tests/methods/test_testing.py -k scattered"),
    ("testing/server.py", "chance = _among(", "chance = 0 * _among(",
     "tests/methods/test_testing.py -k one_grid"),
    ("testing/server.py", "<= LEAK * len(pairs)", ">= 0",
     "tests/methods/test_testing.py -k neighbours"),
    ("testing/server.py", "(bits[..., :-1] << 32) | ", "",
     "tests/methods/test_testing.py -k wide"),
    ("papers/everywhere/run.py", 't["personal"])  # [R, K, P]',
     't["personal"][:, :1])', "tests/papers/test_compare.py -k own_layers"),
    ("testing/training.py", "ROUNDED * moved", "moved", "tests/methods/test_testing.py -k broken"),
    ("papers/everywhere/compare/source.py", "in files(given)]", "in ()]",
     "tests/papers/test_compare.py -k beside"),
    ("papers/everywhere/compare/source.py", "name not in used and name[0]", "False and name[0]",
     "tests/papers/test_compare.py -k slip"),
    ("papers/everywhere/compare/report.py", '{name} (yours)"', '{name}"',
     "tests/papers/test_compare.py -k stored_ones"),
]  # fmt: skip


def copied(folder: Path) -> None:
    for part in ("lgfed_core", "tests", "book"):
        skip = shutil.ignore_patterns("__pycache__", "_build", "_vendor")
        shutil.copytree(ROOT / part, folder / part, ignore=skip)
    for name in ("pyproject.toml", "data"):
        (folder / name).symlink_to(ROOT / name)


def noticed(folder: Path, tests: str) -> bool:
    """Whether a test fails; in a process of its own, which has not imported the core yet."""
    child = os.fork()
    if not child:
        import pytest

        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1), os.dup2(quiet, 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder), str(folder / "tests")]
        sys.dont_write_bytecode = True
        status = pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests.split()]
        )
        os._exit(int(status))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1, 2):  # passed, failed, not even collected
        raise SystemExit(f"pytest ended with {status} on {tests}")
    return status != 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "file", nargs="?", default="", help="part of a file's name, below lgfed_core"
    )
    parser.add_argument("--first", type=int, default=0, help="leave out so many")
    asked = parser.parse_args()
    todo = [m for m in MUTANTS[asked.first :] if asked.file in m[0]]
    if not todo:
        raise SystemExit(
            f"no mutant is of a file called {asked.file!r}; add lines to MUTANTS: the file, what "
            "it says, what it is made to say, and the tests that must notice"
        )
    import hypothesis  # noqa: F401 - once, and not once a mutant
    import pandas  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import torch

    torch.optim.SGD([torch.zeros(1, requires_grad=True)]).zero_grad()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        for tests in sorted({m[3] for m in todo}):
            if noticed(folder, tests):
                raise SystemExit(f"{tests} fails on the code as it is")
        survivors = []
        for file, old, new, tests in todo:
            place = folder / "lgfed_core" / file
            text = place.read_text("utf-8")
            if text.count(old) < 1:
                raise SystemExit(f"{file} has no {old!r} any more; mend the list")
            place.write_text(text.replace(old, new, 1), "utf-8")
            killed = noticed(folder, tests)
            place.write_text(text, "utf-8")
            survivors += [] if killed else [file]
            print(f"{'killed  ' if killed else 'SURVIVED'} {file}: {old!r} -> {new!r}", flush=True)
    print(f"{len(todo) - len(survivors)} of {len(todo)} mutants killed")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main())
