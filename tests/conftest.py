"""PyTorch on one thread, the longest tests first; the toy federation and a browser as fixtures."""

import os
import shutil
from typing import Any

import pytest
import torch

from lgfed_core.engine import Federation
from toy import toy_federation

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
torch.set_num_threads(1)
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks first: a worker that is left with them at the end works alone."""
    items.sort(key=lambda item: item.get_closest_marker("book") is None)


def pytest_make_parametrize_id(val: Any, argname: str) -> str | None:
    """Bytes are named by their argument: an archive made here holds the time, and two workers
    that collect in two different seconds would not name the same tests."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def federation() -> Federation:
    return toy_federation()


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with sync.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
