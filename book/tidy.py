"""What a page keeps of an executed notebook, and the note under its title on stand-in data."""

import re

CITED = re.compile(r"\[[^\]]*\]\((?:\.\./)*references\.bib#([\w,]+)\)")
CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
INTERVAL = re.compile(r"\[([+-]?[\d.]+), ([+-]?[\d.]+)\]")  # as `evidence` writes it
PROGRESS_BAR = re.compile(r"\d+%\|.*\|.*\[.*\]|\d+(it|\w+)? \[\d\d:\d\d")  # as tqdm draws it


def tidy(notebook) -> None:
    """Drop what a page should not carry: run metadata, widget views, progress bars; cite as the
    book does where a notebook has a link that JupyterLab draws; keep numbers in one line. In
    place."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata.pop("widgets", None)
    settings = "\n".join(c.source for c in notebook.cells if "parameters" in tags(c))
    usual = {line.split("  #")[0] for line in settings.splitlines()}
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if cell.cell_type == "markdown":
            cell.source = CITED.sub(r"{cite}`\1`", cell.source)
        if "parameters" in tags(cell):
            cell.metadata["mystnb"] = {"code_prompt_show": "Settings"}
        if "injected-parameters" in tags(cell):
            changed = [x for x in cell.source.splitlines()[1:] if x not in usual]
            tags(cell).append("hide-input" if changed else "remove-cell")
            cell.metadata["mystnb"] = {"code_prompt_show": "Settings changed for this build"}
        kept = []
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                lines = [line.rsplit("\r", 1)[-1] for line in output.text.split("\n")]
                lines = [line for line in lines if line.strip() and not PROGRESS_BAR.search(line)]
                output.text = "".join(f"{line}\n" for line in lines)
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = in_one_line(output.data["text/html"])
            widget = any("widget" in kind for kind in output.get("data", {}))
            if not widget and output.get("text") != "":
                kept.append(output)
        if cell.cell_type == "code":
            cell.outputs = kept


def in_one_line(html: str) -> str:
    """Tables whose means stay with their deviations, and both ends of an interval together."""

    def joined(cell: re.Match[str]) -> str:
        return INTERVAL.sub(r"[\1,&nbsp;\2]", cell[0].replace(" ± ", "&nbsp;±&nbsp;"))

    return CELL.sub(joined, html)


def tags(cell) -> list[str]:
    """The tags of a cell, to read or append to."""
    return cell.metadata.setdefault("tags", [])


def stand_ins(notebook) -> list[dict[str, str]]:
    """What stood in for which data, as `evidence.stand_ins.tell` left it in the outputs."""
    outputs = (o for cell in notebook.cells for o in cell.get("outputs", []))
    return [o.metadata["stand_in"] for o in outputs if "stand_in" in o.get("metadata", {})]


def note(notebook) -> None:
    """Say under the title of a page which data it ran on in the place of the paper's; in place."""
    for found in reversed(stand_ins(notebook)):
        title, _, rest = notebook.cells[0].source.partition("\n")
        notebook.cells[0].source = (
            f"{title}\n\n:::{{admonition}} On stand-in data\n:class: warning\n"
            f"{words(**found)}\n:::\n{rest}"
        )


def words(papers: str, stand_in: str, stored: str = "", **_: str) -> str:
    """What a page says under its title; as `evidence.stand_ins.tell` takes them."""
    stored = stored or papers
    if stored == stand_in:
        return f"The answers and the live run use {stored}, in place of {papers}."
    if stored == papers:
        return f"The answers are from stored runs on {papers}. Only the live run uses {stand_in}."
    answers = f"The answers are from stored runs on {stored}, in place of {papers}."
    return f"{answers} The live run uses {stand_in}."
