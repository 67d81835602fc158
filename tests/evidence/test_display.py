"""pandas' tables in words."""

import pandas as pd
import pytest

from lgfed_core.evidence.display import readable


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
