"""The list of counts of what was attacked is whole: each says how it was counted."""

import re
import tomllib

from lgfed_core.paths import ROOT

FIELDS = {"what", "tried", "unit", "failed", "found", "command", "date", "commit"}


def test_every_count_says_how_it_was_counted():
    lines = tomllib.loads((ROOT / "data" / "reliability.toml").read_text("utf-8"))["count"]
    assert len({line["what"] for line in lines}) == len(lines) > 0
    for line in lines:
        assert line.keys() == FIELDS and 0 <= line["failed"] <= line["tried"], line["what"]
        assert re.fullmatch(r"[0-9a-f]{7,40}", line["commit"]), line["what"]
        for path in re.findall(r"(?:tests|book)/[\w/.]+\.py", line["command"]):
            assert (ROOT / path).is_file(), f"{line['what']}: no {path}"
