"""Files written whole or not at all; rows on other data than the paper's."""

import pandas as pd
import pytest

from lgfed_core.evidence import claims, records
from lgfed_core.files import replacing


@pytest.mark.parametrize("locked", [True, False])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, locked):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path, locked) as part:
        part.write_text("half")
        raise KeyError
    assert path.read_text() == "old"
    with replacing(path, locked) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert not part.match("*.csv")  # a reader of all results does not take it for one
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_owner_left_is_overwritten(tmp_path):
    path = tmp_path / "a.bin"
    with replacing(path, locked=True) as part:
        left = part
        part.write_bytes(b"1")
    left.write_bytes(b"half of a killed run")
    with replacing(path, locked=True) as part:
        part.write_bytes(b"2")
    assert path.read_bytes() == b"2"
    assert not left.exists()


def test_rows_on_the_papers_own_data_come_first():
    rows = pd.DataFrame({"stand_in": ["digits", None, "", "clips", "digits"], "value": range(5)})
    assert records.select(rows, own=True)["value"].tolist() == [1, 2]
    others = rows[rows["stand_in"].isin(["digits", "clips"])]
    assert records.select(others, own=True)["value"].tolist() == [0, 3, 4]
    assert records.stand_in(others) == "clips, digits"
    assert records.stand_in(rows.iloc[1:3]) == ""
    assert claims.on_stand_in("confirmed", "clips") == "on stand-in data (clips): confirmed"
    assert claims.on_stand_in("confirmed", "") == "confirmed"
