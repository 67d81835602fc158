"""The papers' networks with their exact parameter counts, and what any network needs."""

from .images import (
    CifarCNN as CifarCNN,
    MnistMLP as MnistMLP,
    MnistTwoHeads as MnistTwoHeads,
    auxiliary_layers as auxiliary_layers,
    cnn_cifar as cnn_cifar,
    count as count,
    first_layers as first_layers,
    halved as halved,
    last_layers as last_layers,
    make as make,
    mlp_mnist as mlp_mnist,
    mlp_mnist_v1 as mlp_mnist_v1,
)
