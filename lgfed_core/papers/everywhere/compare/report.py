"""The report: one HTML file without a network, Markdown for an appendix, rows, and the command."""

import base64
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from lgfed_core import plotting
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.answers import Told
from lgfed_core.files import replacing
from lgfed_core.papers.forest import RACE, forest

from .. import claims
from ..claims import MARGIN, MEASURES
from ..settings import Settings
from . import beside
from .beside import Beside
from .experiment import METHOD, Yours
from .own_data import WORDS

STYLE = """body{font-family:system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;
line-height:1.5;color:#222}table{border-collapse:collapse;font-size:.85rem;display:block;
overflow-x:auto}td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child,tbody th{text-align:left;vertical-align:top}img{max-width:100%}"""


def folder(out: Path | str) -> Path:
    """``out``, made and tried. Raises SettingsError where nothing can be written."""
    path = Path(out).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise SettingsError(f"no report can be written to {path}: {error.strerror}") from error
    return path


def write(
    place: Path,
    yours: Sequence[Yours],
    cfg: Settings,
    rows: pd.DataFrame,
    found: Beside,
    contract: str,
    left_out: Sequence[str],
) -> None:
    """Write report.html, report.md, rows.csv and command.txt into ``place``.

    yours: the method that is compared, and more of yours. contract: what came of their contracts.
    left_out: what has not run, and why.
    """
    name, (total, *each) = yours[0].called, beside.sentences(found.lines)
    title, where = f"{name} beside the methods of lgfed", rows.iloc[0]
    head = [*_head(yours[0], cfg, rows, found), contract, *(f"Left out: {x}." for x in left_out)]
    text = [f"# {title}", "", *(f"- {one}" for one in (total, *each)), "", *head]
    items = "".join(f"<li>{_bold(one)}</li>" for one in each)
    page = [f"<h1>{title}</h1><p>{_bold(total)}</p>"]
    page.append(beside.counts(found.lines).to_html(border=0))
    page.append(f"<details><summary>In words</summary><ul>{items}</ul></details>")
    page += [f"<p>{one}</p>" for one in head]
    for task in found.mine.index.get_level_values("task").unique():
        mine = claims.of(found.mine, task, METHOD)
        lines = {f"{name} (yours)": mine.mean()}  # means over the seeds that both have
        for method, words in found.names.items():
            values = claims.of(found.others, task, method)
            if len(values := values[values.index.isin(mine.index)]):
                lines[words] = values.mean()
        table = pd.DataFrame(lines).T[[*MEASURES]].dropna(axis=1, how="all")
        table = table.rename(columns=MEASURES).rename_axis(columns=None)
        shown = table.to_html(float_format="{:.1f}".format, na_rep="–", border=0)
        text += ["", f"## {WORDS[task]}", "", _table(table)]
        page.append(f"<h2>{WORDS[task]}</h2>{shown}")
        page += [_figure(one) for one in found.told if one.claim.id.split()[0] == task]
    words = {measure: said for measure, (said, _) in beside.AIMS.items()}
    every = found.lines.replace({"task": WORDS, "measure": words})
    every["needs"] = every["needs"].map("{:.0f}".format)
    text += ["", "## Every comparison", "", _table(every.set_index("task"))]
    body, meta = "\n".join(page), "<meta charset='utf-8'><meta name='viewport' "
    files = {
        "rows.csv": rows.to_csv(index=False),
        "command.txt": f"{_command()}\n"
        f"your code and settings: {', '.join(one.fingerprint for one in yours)}; "
        "your files lie in code/\n"
        f"lgfed_core at commit {where['commit']}\n"
        f"PyTorch {where['torch']}, Python {sys.version.split()[0]}\n"
        f"{where['device']}\n",
        "report.md": "\n".join(text) + "\n",
        "report.html": f"<!doctype html><html lang='en'>{meta}"
        f"content='width=device-width'><title>{name}</title><style>{STYLE}</style>"
        f"<body>{body}</body></html>\n",
    }
    code = {path for one in yours for path in one.given.files()}
    code = sorted(code.union(yours[0].own.files if yours[0].own else ()))
    root = os.path.commonpath([path.parent for path in code]) if code else ""
    files |= {f"code/{p.relative_to(root)}": p.read_text(encoding="utf-8") for p in code}
    old = place / "report.md"
    if old.exists() and old.read_text(encoding="utf-8").split("\n", 1)[0] != text[0]:
        print(f"{place} held the report of another method; this one takes its place")
    for file, content in files.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        with replacing(place / file) as part:
            part.write_text(content, encoding="utf-8")


def _command() -> str:
    """What was typed; a call from Python is only said to be one."""
    if Path(sys.argv[0]).name != "__main__.py":
        return "lgfed_core.compare(...), called from Python"
    return shlex.join(["python", "-m", "lgfed_core", *sys.argv[1:]])


def short(scale: str, own: bool) -> list[str]:
    """What is to be said of runs below paper scale; nothing of others."""
    if scale == "paper":
        return []
    runs = "shortened runs" if own else "shortened runs beside stored ones at full length"
    said = f"At {scale} scale these numbers mean nothing: {runs}. Leave --scale out"
    return [f"{said} for a comparison."]


def _head(yours: Yours, cfg: Settings, rows: pd.DataFrame, found: Beside) -> list[str]:
    many = rows["seed"].nunique()
    rates, others = (", ".join(f"{x:g}" for x in lrs) for lrs in (cfg.lrs, Settings.lrs))
    others = rates if yours.own else others
    out = [
        *short(cfg.scale, yours.own is not None),
        f"{many} seed{'s' * (many > 1)}, {cfg.rounds} rounds, each with {100 * cfg.fraction:g} % "
        f"of the devices, one local epoch, SGD with momentum {cfg.momentum:g}, batches of "
        f"{cfg.batch_size}. Validation rows choose the learning rate, for {yours.called} from "
        f"{rates}, for the others from {others}.",
        "Differences are paired by seed; above 0 yours is better, at gaps and AUC too. "
        f"Less than {MARGIN:g} point is level. Each interval "
        "is of 95 %, with variances shared within a task and measure. Whether a method is ahead is "
        "corrected for the number of comparisons of a task and measure (Holm): an interval without "
        "0 may still be open.",
    ]
    best = found.mine.groupby(level="task")["lr"].first()
    chosen = ", ".join(f"{WORDS[task]} {rate:g}" for task, rate in best.items())
    out.append(f"Chosen rates of {yours.called}: {chosen}.")
    ends = [WORDS[task] for task, rate in best.items() if rate in (min(cfg.lrs), max(cfg.lrs))]
    if ends and len(cfg.lrs) > 1:
        out.append(f"At the end of the grid, so a better rate may lie beyond: {', '.join(ends)}.")
    return out


def _table(table: pd.DataFrame) -> str:
    """As Markdown, without another package."""
    shown = table.map(lambda v: f"{v:.1f}" if isinstance(v, float) else str(v)).replace("nan", "")
    rows = [["", *shown], ["---"] * (1 + shown.shape[1]), *shown.reset_index().to_numpy().tolist()]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in rows)


def _figure(one: Told) -> str:
    with plotting.style():
        figure = forest(one, one.claim.question, outcomes=RACE)
        held = io.BytesIO()
        figure.savefig(held, format="png", dpi=150, metadata={"Software": None})
        plt.close(figure)
    said = base64.b64encode(held.getvalue()).decode()
    return f"<img alt='{one.claim.question}' src='data:image/png;base64,{said}'>"


def _bold(text: str) -> str:
    _, bold, rest = text.split("**", 2)
    return f"<b>{bold}</b>{rest}"
