"""Convolutions of many devices at once on a GPU, each with its own few weights, by Triton.

To `torch.func.vmap` weights of many devices are a convolution in groups, for which cuDNN has only
slow kernels where groups have few channels. Here a program takes a block of one device's positions
with all channels of its output, and adds up tap by tap: what it reads again it finds in the cache,
and nothing is written but the result. Sums have a fixed order, so that runs repeat to the last bit;
they are in float32, without TF32.

Stride 1, no dilation, square kernels. The gradients of a `Convolution` are of the two kinds here,
so that it can be differentiated as often as one likes.
"""

import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function

BLOCK, WARPS = 256, 2  # output positions of a program, and the warps that share them
WEIGHT_BLOCK, WEIGHT_WARPS = 64, 1  # the same for the gradient of the weights


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.conv2d(x, weight, bias)` on a GPU, under `vmap` too.

    x: float32 [n, C, H, W]; weight: [O, C, h, h]; bias: [O] or None -> [n, O, H-h+1, W-h+1].
    """
    out = Convolution.apply(x[None], weight[None], 0)[0]  # [n, O, H', W']
    return out if bias is None else out + bias[:, None, None]


class Convolution(Function):
    """x [L, n, C, H, W], in ``pad`` zeros, with weight [L, O, C, h, h] -> [L, n, O, H', W']."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, pad: int) -> Tensor:
        x, weight = in_order(x), in_order(weight)
        lanes, n, channels, high, wide = x.shape
        into, size = weight.shape[1], weight.shape[-1]
        up, across = high + 2 * pad - size + 1, wide + 2 * pad - size + 1  # H', W'
        out = x.new_empty(lanes, n, into, up, across)
        _outputs[triton.cdiv(n * up * across, BLOCK), lanes](
            x, weight, out, x.stride(0), weight.stride(0), n, high, wide, up, across,
            channels, into, triton.next_power_of_2(into), size, pad, BLOCK, num_warps=WARPS,
        )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        x, weight, ctx.pad = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, weight = ctx.saved_tensors
        size, (of_x, of_weight, _) = weight.shape[-1], ctx.needs_input_grad
        return (
            Convolution.apply(grad, turned(weight), size - 1 - ctx.pad) if of_x else None,
            WeightGradient.apply(x, grad, size, ctx.pad) if of_weight else None,
            None,
        )

    @staticmethod
    def vmap(info, dims, x: Tensor, weight: Tensor, pad: int):
        x, weight = in_lanes(info, dims, x, weight)
        return Convolution.apply(x, weight, pad).unflatten(0, (info.batch_size, -1)), 0


class WeightGradient(Function):
    """x [L, n, C, H, W] and the gradient of an output [L, n, O, H', W'] -> [L, O, C, h, h]."""

    @staticmethod
    def forward(x: Tensor, grad: Tensor, size: int, pad: int) -> Tensor:
        x, grad = in_order(x), in_order(grad)
        lanes, n, channels, high, wide = x.shape
        into, up, across = grad.shape[2:]
        parts = triton.cdiv(up * across, WEIGHT_BLOCK)
        out = x.new_empty(parts, lanes, into, channels, size, size)
        _weights[channels * size, parts, lanes](
            x, grad, out, x.stride(0), grad.stride(0), n, high, wide, up, across,
            channels, into, triton.next_power_of_2(into), size, pad, WEIGHT_BLOCK,
            num_warps=WEIGHT_WARPS,
        )  # fmt: skip
        return out.sum(0)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        x, grad, ctx.size, ctx.pad = inputs
        ctx.save_for_backward(x, grad)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, of = ctx.saved_tensors
        to_x = Convolution.apply(of, turned(grad), ctx.size - 1 - ctx.pad)
        return to_x, Convolution.apply(x, grad, ctx.pad), None, None

    @staticmethod
    def vmap(info, dims, x: Tensor, grad: Tensor, size: int, pad: int):
        x, grad = in_lanes(info, dims, x, grad)
        return WeightGradient.apply(x, grad, size, pad).unflatten(0, (info.batch_size, -1)), 0


def turned(weight: Tensor) -> Tensor:
    """[L, O, C, h, h] -> [L, C, O, h, h], each kernel turned by 180 degrees."""
    return weight.flip(-2, -1).transpose(1, 2)


def in_order(lanes: Tensor) -> Tensor:
    """The same, with the numbers of each lane one after the other; lanes may lie anywhere."""
    return lanes if lanes[0].is_contiguous() else lanes.contiguous()


def in_lanes(info, dims, *tensors: Tensor) -> list[Tensor]:
    """What `vmap` batches, L lanes each of [..., B, ...] -> [B L, ...]."""
    several = zip(tensors, dims[: len(tensors)], strict=True)
    return [
        (t.expand(info.batch_size, *t.shape) if at is None else t.movedim(at, 0)).flatten(0, 1)
        for t, at in several
    ]


@triton.jit
def _outputs(
    x, weight, out, x_lane, weight_lane, n, H: tl.constexpr, W: tl.constexpr,
    UP: tl.constexpr, ACROSS: tl.constexpr, C: tl.constexpr, INTO: tl.constexpr,
    PADDED: tl.constexpr, SIZE: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # positions of all rows [BLOCK]
    real = at < n * UP * ACROSS
    row, place = at // (UP * ACROSS), at % (UP * ACROSS)
    y, z = place // ACROSS - PAD, place % ACROSS - PAD
    o = tl.arange(0, PADDED)
    first = x + lane * x_lane + row * C * H * W + y * W + z  # [BLOCK]
    tap = weight + lane * weight_lane + o * C * SIZE * SIZE  # [O]
    total = tl.zeros([PADDED, BLOCK], dtype=tl.float32)
    for c in range(C):
        for i in tl.static_range(SIZE):
            for j in tl.static_range(SIZE):
                there = real
                if PAD > 0:
                    there = real & (y + i >= 0) & (y + i < H) & (z + j >= 0) & (z + j < W)
                value = tl.load(first + (c * H + i) * W + j, there, 0.0)
                w = tl.load(tap + (c * SIZE + i) * SIZE + j, o < INTO, 0.0)
                total += w[:, None] * value[None, :]
    to = out + ((lane * n + row[None, :]) * INTO + o[:, None]) * UP * ACROSS + place[None, :]
    tl.store(to, total, real[None, :] & (o < INTO)[:, None])


@triton.jit
def _weights(
    x, grad, out, x_lane, grad_lane, n, H: tl.constexpr, W: tl.constexpr,
    UP: tl.constexpr, ACROSS: tl.constexpr, C: tl.constexpr, INTO: tl.constexpr,
    PADDED: tl.constexpr, SIZE: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    c, i = tl.program_id(0) // SIZE, tl.program_id(0) % SIZE  # a channel, a row of its kernel
    part, lane = tl.program_id(1), tl.program_id(2).to(tl.int64)
    place = part * BLOCK + tl.arange(0, BLOCK)  # positions, the same in all rows [BLOCK]
    real = place < UP * ACROSS
    y, z = place // ACROSS + i - PAD, place % ACROSS - PAD
    o = tl.arange(0, PADDED)
    first = x + lane * x_lane + c * H * W + y * W + z  # [BLOCK]
    of = grad + lane * grad_lane + o[:, None] * UP * ACROSS + place[None, :]  # [O, BLOCK]
    known = real[None, :] & (o < INTO)[:, None]
    none = tl.zeros([PADDED, BLOCK], dtype=tl.float32)
    totals = (none,) * SIZE  # of each tap
    for row in range(n):
        g = tl.load(of + row * INTO * UP * ACROSS, known, 0.0)
        more = ()
        for j in tl.static_range(SIZE):
            there = real
            if PAD > 0:
                there = real & (y >= 0) & (y < H) & (z + j >= 0) & (z + j < W)
            value = tl.load(first + row * C * H * W + j, there, 0.0)
            more = more + (totals[j] + g * value[None, :],)  # noqa: RUF005 as Triton has no stars
        totals = more
    to = out + ((part * tl.num_programs(2) + lane) * INTO + o) * C * SIZE * SIZE  # [O]
    for j in tl.static_range(SIZE):
        tl.store(to + (c * SIZE + i) * SIZE + j, tl.sum(totals[j], 1), o < INTO)
