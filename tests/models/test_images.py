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
from lgfed_core.models import (
    cnn_cifar,
    count,
    first_layers,
    halved,
    images,
    last_layers,
    make,
    mlp_mnist,
)
from lgfed_core.models.layout import Layout, joined

NETS = {"mlp": (mlp_mnist, (784,)), "cnn": (cnn_cifar, (3, 32, 32))}


@pytest.fixture(autouse=True)
def same_inputs_each_time():
    torch.manual_seed(0)


@pytest.fixture(params=NETS)
def net_and_x(request):
    net_fn, shape = NETS[request.param]
    return make(net_fn, 0), torch.randn(4, *shape)


def test_mnist_counts():
    net = mlp_mnist()
    assert count(net) == 633_226
    per_layer = [count(net, {f"{name}.weight", f"{name}.bias"}) for name in net.layers]
    assert per_layer == [401_920, 131_328, 65_792, 32_896, 1_290]
    assert count(net, last_layers(net, 3)) == 99_978  # 15.79 %, what the paper shares
    assert count(net, last_layers(net, 2)) == 34_186  # what its words describe
    assert round(100 * 99_978 / 633_226, 2) == 15.79


def test_cifar_counts():
    net = cnn_cifar()
    assert count(net) == 64_102
    per_layer = [count(net, {f"{name}.weight", f"{name}.bias"}) for name in net.layers]
    assert per_layer == [456, 2_416, 48_120, 12_100, 1_010]
    assert count(net, first_layers(net, 2)) == 2_872  # both convolutions, 4.48 %
    assert round(100 * 2_872 / 64_102, 2) == 4.48


def test_parts_are_parameter_names():
    both = {f"{name}.{part}" for name in ("conv1", "conv2") for part in ("weight", "bias")}
    assert first_layers(cnn_cifar(), 2) == both
    assert last_layers(mlp_mnist(), 1) == {"fc5.weight", "fc5.bias"}


def test_first_and_last_layers_cover_the_net(net_and_x):
    net, _ = net_and_x
    names = [name for name, _ in net.named_parameters()]
    assert [n.split(".")[0] for n in names[::2]] == list(net.layers)  # input to output
    for n in range(len(net.layers) + 1):
        bottom, top = first_layers(net, n), last_layers(net, len(net.layers) - n)
        assert bottom | top == set(names) and not bottom & top
        assert len(bottom) == 2 * n
    assert count(net, []) == 0 and last_layers(net, 0) == frozenset()


@pytest.mark.parametrize("n", [-1, 6])
@pytest.mark.parametrize("part", [first_layers, last_layers])
def test_a_part_that_is_not_there_is_refused(part, n):
    with pytest.raises(SettingsError, match="it has 5"):
        part(mlp_mnist(), n)


def test_count_counts_a_name_once():
    assert count(mlp_mnist(), ["fc5.bias", "fc5.bias"]) == 10


def test_count_refuses_an_unknown_name():
    with pytest.raises(SettingsError, match=r"no parameter called \['fc9.weight'\] in MnistMLP"):
        count(mlp_mnist(), ["fc1.weight", "fc9.weight"])


def test_mlp_takes_images_too():
    net, x = make(mlp_mnist, 0), torch.rand(3, 784)
    out = net(x)
    assert out.shape == (3, 10)
    assert torch.equal(net(x.view(3, 28, 28)), out)
    assert torch.equal(net(x.view(3, 1, 28, 28)), out)


def test_each_net_maps_rows_to_ten_logits(net_and_x):
    net, x = net_and_x
    out = net(x)
    assert out.shape == (4, 10)
    assert not torch.allclose(out.sum(1), torch.ones(4))
    assert torch.allclose(net(x[1:2]), out[1:2], atol=1e-6)  # rows do not mix


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


def test_weights_depend_on_the_seed_alone(net_and_x):
    net_fn = type(net_and_x[0])
    torch.manual_seed(5)
    state = torch.get_rng_state()
    one = make(net_fn, 3)
    assert torch.equal(state, torch.get_rng_state())
    torch.rand(10)
    again, other = make(net_fn, 3), make(net_fn, 4)
    for a, b, c in zip(one.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)


def test_initialisation_is_pytorchs_default():
    torch.manual_seed(3)
    expected = torch.nn.Linear(784, 512)
    net = make(mlp_mnist, 3)
    assert torch.equal(net.fc1.weight, expected.weight)
    assert torch.equal(net.fc1.bias, expected.bias)


def test_many_nets_at_once_equal_one_after_the_other(net_and_x):
    """functional_call under vmap, forward and gradient, against a plain loop."""
    net, x = net_and_x
    nets = [make(type(net), seed) for seed in range(3)]
    y = torch.tensor([0, 3, 9, 1])
    params, _ = stack_module_state(nets)

    def loss(p):
        return F.cross_entropy(functional_call(net, p, (x,)), y)

    gradients = vmap(grad(loss))(params)
    outputs = vmap(lambda p: functional_call(net, p, (x,)))(params)
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
        found = halved(x)
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
    ],
)
def test_what_makes_no_network_is_refused(ask, said):
    with pytest.raises(SettingsError, match=said):
        ask()


def test_a_seed_may_be_of_numpy():
    one, other = (joined(make(mlp_mnist, seed)) for seed in (3, np.int64(3)))
    assert torch.equal(one, other)


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
