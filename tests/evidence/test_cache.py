"""What is worked out once of each table of rows, and of each file of printed numbers."""

import pandas as pd

from lgfed_core.evidence import printed
from lgfed_core.evidence.cache import once
from lgfed_core.evidence.printed import Metric, Table
from lgfed_core.papers.fade.objects import stored


def test_each_table_and_each_question_is_answered_once():
    asked = []

    @once
    def largest(rows, column="a"):
        asked.append(column)
        return rows[column].max()

    first, second = pd.DataFrame(dict(a=[1, 2], b=[3, 4])), pd.DataFrame(dict(a=[5, 6]))
    assert [largest(first), largest(first), largest(first, "b"), largest(second)] == [2, 2, 4, 6]
    assert asked == ["a", "b", "a"]


def test_what_was_kept_goes_with_its_table():
    @once
    def total(rows):
        return rows["a"].sum()

    for n in range(50):  # a new table may lie where an old one lay
        rows = pd.DataFrame(dict(a=[n]))
        assert total(rows) == n
        del rows


def test_the_sweep_on_objects_is_looked_through_once(monkeypatch):
    seen, real = [], stored.swept.__wrapped__
    monkeypatch.setattr(stored, "swept", once(lambda found: seen.append(1) or real(found)))
    rows = stored.rows()
    for users in ("noniid", "iid"):
        for _ in range(3):
            stored.longer(rows, users)
    assert seen == [1]


def test_a_file_of_printed_numbers_is_read_again_when_it_changes(tmp_path, monkeypatch):
    reads, read = [], pd.read_csv
    monkeypatch.setattr(pd, "read_csv", lambda *a, **k: reads.append(1) or read(*a, **k))
    table, path = Table("one", "fade", "", ("method",), (Metric("acc"),)), tmp_path / "one.csv"
    for number in (50.0, 61.25):
        path.write_text(f"method,acc\nfedavg,{number}\n")
        for _ in range(3):
            found = printed.cells(table, tmp_path)
            assert found["paper"].tolist() == [number]
            found["paper"] = 0.0  # a caller's own copy
    assert len(reads) == 2
