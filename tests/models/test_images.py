"""The networks: exact counts, named parts, seeded weights, use under functional_call and vmap."""

import math
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap

from lgfed_core.errors import SettingsError
from lgfed_core.models import cnn_cifar, count, first_layers, images, last_layers, make, mlp_mnist
from lgfed_core.models.layout import Layout, joined, parts

NETS = {"mlp": (mlp_mnist, (784,)), "cnn": (cnn_cifar, (3, 32, 32))}


@pytest.fixture(autouse=True)
def same_inputs_each_time():
    torch.manual_seed(0)


@pytest.fixture(params=NETS)
def net_and_x(request):
    net_fn, shape = NETS[request.param]
    return make(net_fn, 0), torch.randn(4, *shape)


@pytest.mark.parametrize(
    ("make_net", "layers", "part", "size", "percent"),
    [  # the paper shares 15.79 % of the MLP; its words describe two layers
        (mlp_mnist, [401_920, 131_328, 65_792, 32_896, 1_290], last_layers, {3: 99_978}, 15.79),
        (cnn_cifar, [456, 2_416, 48_120, 12_100, 1_010], first_layers, {2: 2_872}, 4.48),
    ],
)
def test_counts_are_the_papers(make_net, layers, part, size, percent):
    net = make_net()
    assert [count(net, {f"{n}.weight", f"{n}.bias"}) for n in net.layers] == layers
    assert count(net) == sum(layers)
    assert {n: count(net, part(net, n)) for n in size} == size
    assert round(100 * next(iter(size.values())) / count(net), 2) == percent


def test_first_and_last_layers_cover_the_net(net_and_x):
    net, _ = net_and_x
    names = [name for name, _ in net.named_parameters()]
    assert [n.split(".")[0] for n in names[::2]] == list(net.layers)  # input to output
    for n in range(len(net.layers) + 1):
        bottom, top = first_layers(net, n), last_layers(net, len(net.layers) - n)
        assert bottom | top == set(names) and not bottom & top
        assert len(bottom) == 2 * n
    assert count(net, []) == 0 and last_layers(net, 0) == frozenset()
    assert parts(net, "fc") == frozenset(), "a beginning is no part"
    assert count(net, names[-1:] * 2) == 10  # a name counts once


def test_each_net_maps_rows_to_ten_logits(net_and_x):
    net, x = net_and_x
    out = net(x)
    assert out.shape == (4, 10)
    assert not torch.allclose(out.sum(1), torch.ones(4))
    assert torch.allclose(net(x[1:2]), out[1:2], atol=1e-6)  # rows do not mix
    if x.dim() == 2:  # pictures serve as well
        assert torch.equal(net(x.view(4, 28, 28)), out)
        assert torch.equal(net(x.view(4, 1, 28, 28)), out)


def test_version_1_network_is_the_papers():
    net = images.mlp_mnist_v1()
    assert count(net) == 633_226 + 34_186
    assert count(net, last_layers(net, 2)) == count(net, images.auxiliary_layers(net)) == 34_186
    x, plain = torch.randn(3, 784), mlp_mnist()
    assert not torch.equal(net(x), net(x, own=True))
    plain.load_state_dict({n: p for n, p in net.state_dict().items() if n.startswith("fc")})
    assert torch.equal(net(x), plain(x))


def test_the_cnn_is_the_written_formula():
    net, x = make(cnn_cifar, 0), torch.randn(2, 3, 32, 32)
    p = dict(net.named_parameters())
    h = F.max_pool2d(F.relu(F.conv2d(x, p["conv1.weight"], p["conv1.bias"])), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["conv2.weight"], p["conv2.bias"])), 2)
    h = h.reshape(2, 400)
    for name in ("fc1", "fc2"):
        h = (h @ p[f"{name}.weight"].T + p[f"{name}.bias"]).clamp(min=0)
    out = h @ p["fc3.weight"].T + p["fc3.bias"]
    assert torch.allclose(net(x), out, atol=1e-5)


def test_the_released_mlp_ends_in_a_softmax():
    plain, released = make(mlp_mnist, 0), make(partial(mlp_mnist, softmax=True), 0)
    x, y = torch.randn(64, 784), torch.arange(64) % 10
    assert torch.allclose(released(x), plain(x).softmax(1))
    right = F.one_hot(y, 10).float()  # the best that probabilities can do
    assert math.isclose(F.cross_entropy(right, y).item(), math.log(1 + 9 / math.e), rel_tol=1e-5)
    size = []
    for net in (plain, released):
        F.cross_entropy(net(x), y).backward()
        size.append(torch.cat([p.grad.flatten() for p in net.parameters()]).norm().item())
    assert 7 < size[0] / size[1] < 14  # "about ten times smaller"


def test_weights_depend_on_the_seed_alone_and_are_pytorchs(net_and_x):
    net_fn, state = type(net_and_x[0]), torch.get_rng_state()
    one, again, other = (joined(make(net_fn, seed)) for seed in (3, np.int64(3), 4))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(3)
    assert torch.equal(make(mlp_mnist, 3).fc1.weight, torch.nn.Linear(784, 512).weight)


def test_many_nets_at_once_equal_one_after_the_other(net_and_x):
    """functional_call under vmap, forward and gradient, against a plain loop."""
    (net, x), y = net_and_x, torch.tensor([0, 3, 9, 1])
    nets = [make(type(net), seed) for seed in range(3)]

    def loss(p):
        outputs = functional_call(net, p, (x,))
        return F.cross_entropy(outputs, y), outputs

    gradients, outputs = vmap(grad(loss, has_aux=True))(stack_module_state(nets)[0])
    for i, one in enumerate(nets):
        assert torch.allclose(outputs[i], one(x), atol=1e-5)
        F.cross_entropy(one(x), y).backward()
        for name, p in one.named_parameters():
            assert torch.allclose(gradients[name][i], p.grad, atol=1e-5), name


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_the_pool_for_testing_is_pytorchs(memory):
    x = torch.randn(3, 6, 8, 10).round(decimals=1).to(memory_format=memory)  # with ties
    x[0, 0, 0, 0] = torch.nan
    with torch.no_grad():
        found = images.halved(x)
    assert torch.equal(found.nan_to_num(9.0), F.max_pool2d(x, 2).nan_to_num(9.0))


def test_without_triton_convolutions_take_the_librarys_way():
    layer, x = torch.nn.Conv2d(3, 4, 5), torch.randn(2, 3, 9, 8)
    images._by_triton.cache_clear()
    with patch.object(torch.Tensor, "is_cuda", True), pytest.warns(UserWarning, match="cuDNN's"):
        assert torch.equal(images.convolved(layer, x), layer(x))
    images._by_triton.cache_clear()


@pytest.mark.parametrize(
    ("size", "kind", "ours"),
    [((5, 5), "float", True), ((5, 3), "float", False), (5, "double", False)],
)
def test_a_gpu_convolves_by_our_kernels_what_they_know(size, kind, ours):
    layer, x = torch.nn.Conv2d(3, 4, size), torch.randn(2, 3, 9, 8)
    layer, x = getattr(layer, kind)(), getattr(x, kind)()
    taken = []

    def kernels(*given):
        taken.append(given)
        return torch.nn.functional.conv2d(*given)

    on_a_gpu = patch.object(torch.Tensor, "is_cuda", True)
    with on_a_gpu, patch.object(images, "_by_triton", lambda: kernels):
        found = images.convolved(layer, x)
    assert bool(taken) == ours and torch.equal(found, layer(x))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: make(mlp_mnist, "0"), "seed is '0'; it must be a whole number from 0"),
        (lambda: make(mlp_mnist, -1), "seed is -1"),
        (lambda: make(mlp_mnist(), 0), "MnistMLP is a network; give what makes it"),
        (lambda: make(lambda: None, 0), "makes None, which is no network"),
        (lambda: last_layers(torch.nn.Sequential(torch.nn.Linear(2, 2)), 1), "has no `layers`"),
        *((partial(first_layers, mlp_mnist(), n), "it has 5") for n in (-1, 6)),
        *((partial(last_layers, mlp_mnist(), n), "it has 5") for n in (-1, 6)),
        (lambda: count(mlp_mnist(), ["fc1.weight", "fc9.weight"]), r"parameter called \['fc9.w"),
    ],
)
def test_what_makes_no_network_or_part_of_one_is_refused(ask, said):
    with pytest.raises(SettingsError, match=said):
        ask()


def test_a_server_and_its_devices_are_joined_run_by_run():
    """Two runs with two devices each: the head is the run's, not the device's."""
    net = mlp_mnist()
    layout = Layout(net, last_layers(net, 1))
    shared = torch.tensor([1.0, 2.0])[:, None].expand(2, layout.size_shared)
    personal = torch.zeros(2, 2, layout.size_personal)
    found = layout.join(shared, personal)
    assert found.shape == (2, 2, count(net))
    assert found.amax(-1).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert torch.equal(found, layout.join(shared[:, None], personal))
    assert layout.join(shared[0], personal[0]).amax(-1).tolist() == [1.0, 1.0]


def test_vectors_of_another_length_are_refused():
    net = mlp_mnist()
    layout = Layout(net, last_layers(net, 1))
    vector = joined(net)
    shared, personal = layout.split(vector)
    for ask in (
        lambda: layout.split(torch.cat([vector, vector[:1]])),
        lambda: layout.views(shared[1:], personal),
        lambda: layout.views(shared, torch.cat([personal, shared])),
        lambda: layout.join(personal, shared),
    ):
        with pytest.raises(SettingsError, match=r"they must be \[..., \d+\]"):
            ask()
