"""The list of counts is whole, and one that is not is refused by its line."""

import re

import pytest

from lgfed_core.errors import ResultsError
from lgfed_core.evidence import reliability
from lgfed_core.paths import ROOT

ONE = """[[count]]
what = "a thing"
tried = 3
unit = "blows"
failed = 1
found = "a dent"
command = "python -m hammer"
date = 2026-01-02
commit = "abcdef0"
"""


def test_every_count_says_how_it_was_counted():
    lines = reliability.counts()
    assert len(lines) and not lines["what"].duplicated().any()
    for line in lines.itertuples():
        assert re.fullmatch(r"[0-9a-f]{7,40}", line.commit), line.what
        for path in re.findall(r"(?:tests|book)/[\w/.]+\.py", line.command):
            assert (ROOT / path).is_file(), f"{line.what}: no {path}"


def test_a_count_reads_as_a_line_of_the_table(tmp_path):
    path = tmp_path / "list.toml"
    path.write_text(ONE)
    said = reliability.markdown(reliability.counts(path)).splitlines()[-1]
    assert said == (
        "- **a thing**: 1 of 3 blows failed; a dent (`python -m hammer`, 2026-01-02, abcdef0)"
    )


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('unit = "blows"\n', "", "count 1: unit is missing"),
        ("tried", "tired", "tired"),
        ("failed = 1", "failed = 4", "a thing: 4 of 3"),
        ("failed = 1", 'failed = "1"', "a thing: 1 of 3"),
        ("failed", "[failed", "cannot be read"),
    ],
)
def test_a_broken_count_is_named(tmp_path, old, new, named):
    path = tmp_path / "list.toml"
    path.write_text(ONE.replace(old, new))
    with pytest.raises(ResultsError, match=named):
        reliability.counts(path)
    with pytest.raises(ResultsError, match="nowhere.toml cannot be read"):
        reliability.counts(tmp_path / "nowhere.toml")
