"""PyTorch on one thread, the longest tests first, and the toy federation as a fixture."""

import pytest
import torch

from lgfed_core.engine import Federation
from toy import toy_federation

torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Notebooks first: a worker that is left with them at the end works alone."""
    items.sort(key=lambda item: item.get_closest_marker("book") is None)


@pytest.fixture
def federation() -> Federation:
    return toy_federation()
