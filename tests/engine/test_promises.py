"""The same seed gives the same bits, and where it does not, how far apart (`book/reliability`)."""

import pytest
import torch

from lgfed_core import Dataset, FedAvg, Federation, LGFedAvg, LocalTraining, Split, run
from lgfed_core.models import last_layers, make
from lgfed_core.models.images import MnistMLP
from lgfed_core.partition import ClientIndices, Partition
from toy import SGD, models, toy_federation

FAR = 1e-4  # what book/reliability promises between kinds of lanes, and numbers of threads


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def wide() -> Federation:
    """The network of MNIST, large enough that PyTorch shares its products among threads."""
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(40) % 10
    rows = Split(torch.randn(40, 784, generator=rng), y)
    held = ClientIndices.from_lists(torch.arange(40).tensor_split(2))
    part = Partition("wide", held, None, held)
    return Federation(Dataset("wide", rows, rows, 10), [part], make(MnistMLP, 0), [0])


def ends(lanes: str, workers: int = 1) -> list[torch.Tensor]:
    fed, training = wide(), LocalTraining(lr=0.05, batch_size=10)
    method = LGFedAvg(layers=last_layers(fed.net, 3))
    how = dict(lanes=lanes, workers=workers)
    return [
        models(run(fed, method, training, 2, **how)),
        models(run(toy_federation((0, 1), fraction=0.5), FedAvg(), SGD, 3, **how)),
    ]


def test_looped_lanes_have_the_same_bits_with_any_threads_and_workers(threads):
    threads(1)
    once = ends("looped")
    for many, workers in ((1, 1), (3, 1), (2, 2)):
        threads(many)
        assert all(map(torch.equal, once, ends("looped", workers)))


def test_batched_lanes_have_the_same_bits_again_and_nearly_with_other_threads(threads):
    threads(1)
    once, looped = ends("batched"), ends("looped")
    assert all(map(torch.equal, once, ends("batched")))
    for other in (looped, *(threads(n) or ends("batched") for n in (2, 3))):
        for a, b in zip(once, other, strict=True):
            assert (a - b).norm() <= FAR * a.norm() and torch.allclose(a, b, atol=FAR)
