"""PyTorch on one thread, and the toy federation as a fixture."""

import pytest
import torch

from lgfed_core.engine import Federation
from toy import toy_federation

torch.set_num_threads(1)


@pytest.fixture
def federation() -> Federation:
    return toy_federation()
