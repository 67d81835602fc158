"""Words that rows, settings and the command line share; to know them, nothing heavy is imported."""

PROTOCOLS = ("as_described", "as_released")
SELECTIONS = ("last", "best_val", "best_test")
SCALES = ("smoke", "quick", "short", "paper")  # short: paper scale but for fewer rounds
DEVICES = ("auto", "cpu", "cuda")
LANES = ("auto", "looped", "batched")
PAPERS = {"lgfedavg": "LG-FedAvg", "cgau": "CGAU", "fade": "FADE"}
