"""Where things live. Everything hangs under one root: the checkout, or ``LGFED_HOME``."""

import os
from pathlib import Path

ROOT = Path(os.environ.get("LGFED_HOME", Path(__file__).resolve().parent.parent))
SOURCES = ROOT / "data" / "sources.toml"  # mirrors, checksums, licences
PAPER = ROOT / "data" / "paper"  # the papers' numbers, read only
RESULTS = ROOT / "data" / "results"  # ours, appended by `run`
CACHE = Path(os.environ.get("LGFED_CACHE", ROOT / "data" / "cache"))  # downloads, not in git
RUNS = Path(os.environ.get("LGFED_RUNS", ROOT / "data" / "runs"))  # checkpoints, not in git
