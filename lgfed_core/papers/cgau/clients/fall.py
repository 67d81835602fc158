"""Claim C5 in words, for each data set that it is judged on: distances fall with shuffling."""

import pandas as pd

from lgfed_core.evidence.claims import said
from lgfed_core.evidence.verdict import NOT_RUN


def sentence(lines: pd.DataFrame, data: str) -> str:
    """C5's verdict on ``data`` and its weakest step, in Markdown; lines: of `claims.judged`."""
    if "C5" not in lines.index or not lines.loc["C5", "ran"]:
        return f"**C5 on {data}**: {NOT_RUN}."
    line = lines.loc["C5"]
    # False if a step no longer lowered the distance, or others came to lack runs.
    return (
        f"**C5 on {data}**: {line['said']}. The step that lowers the distance least surely is "
        f"{line['at']}: by {said(line, int(line['at_runs']))}."
    )
