"""The papers' networks with their exact parameter counts, and names for parts of them.

========================  =========  =======================  ==================
network                   total      shared by LG-FedAvg      which layers
========================  =========  =======================  ==================
`mlp_mnist`               633,226    99,978 (15.79 %)         the last three
`mlp_mnist_v1`            667,412    34,186                   the last two
`cnn_cifar`               64,102     2,872 (4.48 %)           both convolutions
========================  =========  =======================  ==================

Source: Liang et al. (2020), appendix C.2.1 and C.2.2. The text says "last two layers" for MNIST;
99,978 is the last three. It says LeNet-5 at 224 x 224 for CIFAR-10; 64,102 is 32 x 32 with 100
units where LeNet-5 has 84. Initialisation is PyTorch's default.
"""

import warnings
from collections.abc import Callable, Iterable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core import require
from lgfed_core.errors import SettingsError

from .layout import parts


class MnistMLP(nn.Module):
    """784-512-256-256-128-10 with ReLU; ``softmax`` appends one, as the released code does.

    The released code trains that output with cross-entropy, which applies a second softmax: the
    loss cannot fall below log(1 + 9/e) = 1.4612 and gradients start about ten times smaller.
    """

    layers: tuple[str, ...] = ("fc1", "fc2", "fc3", "fc4", "fc5")  # input to output

    def __init__(self, softmax: bool = False):
        super().__init__()
        self.softmax = softmax
        self.fc1 = nn.Linear(784, 512)
        self.fc2 = nn.Linear(512, 256)
        self.fc3 = nn.Linear(256, 256)
        self.fc4 = nn.Linear(256, 128)
        self.fc5 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, 784], [n, 28, 28] or [n, 1, 28, 28] -> logits (or probabilities) [n, 10]."""
        x = x.flatten(1)  # [n, 784]
        x = F.relu(self.fc1(x))  # [n, 512]
        x = F.relu(self.fc2(x))  # [n, 256]
        x = F.relu(self.fc3(x))  # [n, 256]
        x = F.relu(self.fc4(x))  # [n, 128]
        x = self.fc5(x)  # [n, 10]
        return x.softmax(-1) if self.softmax else x


class MnistTwoHeads(MnistMLP):
    """Version 1's network: `MnistMLP` with a second head 256-128-10, the device's own.

    The global head, fc4 and fc5, has 34,186 parameters: "layers kept 2, input 256, layers [128]"
    in Table 5 of v1, and what its Table 1 counts.
    """

    auxiliary = ("own4", "own5")  # layers beside the five

    def __init__(self):
        super().__init__()
        self.own4 = nn.Linear(256, 128)
        self.own5 = nn.Linear(128, 10)

    def forward(self, x: Tensor, own: bool = False) -> Tensor:
        """x as for `MnistMLP` -> logits [n, 10] of the global head, or of the device's ``own``."""
        x = x.flatten(1)  # [n, 784]
        for layer in (self.fc1, self.fc2, self.fc3):
            x = F.relu(layer(x))  # [n, 512], [n, 256], [n, 256]
        first, last = (self.own4, self.own5) if own else (self.fc4, self.fc5)
        return last(F.relu(first(x)))  # [n, 10]


class CifarCNN(nn.Module):
    """Two 5 x 5 convolutions (6 and 16 channels), each with ReLU and 2 x 2 max-pool, 120-100-10.

    ``log_softmax`` appends one, as the released code does. Cross-entropy then sees the same
    numbers as from logits, but an average of outputs is one of log-probabilities.
    """

    layers: tuple[str, ...] = ("conv1", "conv2", "fc1", "fc2", "fc3")  # input to output

    def __init__(self, log_softmax: bool = False):
        super().__init__()
        self.log_softmax = log_softmax
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 100)
        self.fc3 = nn.Linear(100, 10)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, 3, 32, 32] -> logits (or log-probabilities) [n, 10]."""
        x = F.relu(halved(convolved(self.conv1, x)))  # [n, 6, 14, 14]; the same as ReLU first,
        x = F.relu(halved(convolved(self.conv2, x)))  # [n, 16, 5, 5], and four times less of it
        x = x.flatten(1)  # [n, 400]
        x = F.relu(self.fc1(x))  # [n, 120]
        x = F.relu(self.fc2(x))  # [n, 100]
        x = self.fc3(x)  # [n, 10]
        return x.log_softmax(-1) if self.log_softmax else x


def convolved(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """``layer(x)``, of stride 1 without padding: x [n, C, H, W] -> [n, C', H', W'].

    On a GPU by `device_convolution`, where Triton works: cuDNN's kernels are slow for weights of
    many devices, each with few channels. It knows square kernels and float32 alone.
    """
    high, wide = layer.kernel_size
    fast = x.is_cuda and x.dtype == torch.float32 and high == wide and _by_triton()
    return fast(x, layer.weight, layer.bias) if fast else layer(x)


@cache
def _by_triton() -> Callable[[Tensor, Tensor, Tensor | None], Tensor] | None:
    """The convolution of `device_convolution`; None where it has no Triton, or no compiler."""
    try:
        from .device_convolution import convolution

        pixel = torch.zeros(1, 1, 1, 1, device="cuda")
        convolution(pixel, pixel, None)
    except Exception as error:  # whatever it is that Triton lacks
        said = f"convolutions take cuDNN's way, as Triton does not work: {error}"
        warnings.warn(said, stacklevel=3)
        return None
    return convolution


def halved(x: Tensor) -> Tensor:
    """2 x 2 max-pool of x [n, C, H, W], H and W even -> [n, C, H/2, W/2].

    On a CPU, PyTorch's kernel is slow for six channels: maxima of slices take an eighth of its
    time. Their gradient differs where values tie, so they serve for testing only.
    """
    if torch.is_grad_enabled():
        return F.max_pool2d(x, 2)
    rows = torch.maximum(x[..., ::2, :], x[..., 1::2, :])  # [n, C, H/2, W]
    return torch.maximum(rows[..., ::2], rows[..., 1::2])


def mlp_mnist(softmax: bool = False) -> MnistMLP:
    """LG-FedAvg's MNIST network: 633,226 parameters. ``softmax=True`` is the released form."""
    return MnistMLP(softmax)


def mlp_mnist_v1() -> MnistTwoHeads:
    """Version 1's MNIST network: 667,412 parameters, 34,186 of them in each head."""
    return MnistTwoHeads()


def cnn_cifar(log_softmax: bool = False) -> CifarCNN:
    """LG-FedAvg's CIFAR-10 network: 64,102 parameters. ``log_softmax`` is the released form."""
    return CifarCNN(log_softmax)


def make(net_fn: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build ``net_fn()`` on the CPU with weights that depend on ``seed`` alone.

    The global random state is neither read nor changed. A network with settings is passed as
    ``partial(mlp_mnist, softmax=True)``; it has the same weights as without the softmax. Raises
    SettingsError unless ``seed`` is a whole number from 0, and ``net_fn`` makes a network.
    """
    require.whole(seed=seed)
    if isinstance(net_fn, nn.Module):
        raise SettingsError(
            f"{type(net_fn).__name__} is a network; give what makes it, as its class"
        )
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(int(seed))  # torch.manual_seed would reach CUDA as well
        net = net_fn()
    if not isinstance(net, nn.Module):
        raise SettingsError(f"{net_fn!r:.80} makes {net!r:.80}, which is no network")
    return net


def count(net: nn.Module, names: Iterable[str] | None = None) -> int:
    """Number of parameters of ``net``, or of those called ``names`` (each counted once).

    Raises SettingsError for a name that ``net`` does not have.
    """
    sizes = {name: p.numel() for name, p in net.named_parameters()}
    names = sizes.keys() if names is None else set(names)
    if unknown := names - sizes.keys():
        raise SettingsError(
            f"no parameter called {sorted(unknown)} in {type(net).__name__}; it has {list(sizes)}"
        )
    return sum(sizes[name] for name in names)


def first_layers(net: nn.Module, n: int) -> frozenset[str]:
    """Names of the parameters of the ``n`` layers nearest to the input.

    ``net.layers`` has the names of its layers from input to output, as the papers count them.
    Raises SettingsError where it has none, or fewer than ``n``; so does `last_layers`.
    """
    return parts(net, *_checked(net, n)[:n])


def last_layers(net: nn.Module, n: int) -> frozenset[str]:
    """Names of the parameters of the ``n`` layers nearest to the output.

    >>> sorted(last_layers(mlp_mnist(), 1))
    ['fc5.bias', 'fc5.weight']
    """
    layers = _checked(net, n)
    return parts(net, *layers[len(layers) - n :])


def auxiliary_layers(net: MnistTwoHeads) -> frozenset[str]:
    """Names of the parameters of a network's auxiliary head."""
    return parts(net, *net.auxiliary)


def _checked(net: nn.Module, n: int) -> tuple[str, ...]:
    """The names of the layers of ``net``, which has ``n`` of them at least."""
    layers = getattr(net, "layers", None)
    if not isinstance(layers, tuple | list):
        raise SettingsError(
            f"{type(net).__name__} has no `layers`, its layers' names from input to output; name "
            'the parameters themselves, as frozenset({"2.weight", "2.bias"})'
        )
    if not 0 <= n <= len(layers):
        said = f"it has {len(layers)} ({', '.join(layers)})"
        raise SettingsError(f"{n} layers of {type(net).__name__}: {said}")
    return tuple(layers)
