"""Settings, networks and methods as JSON, so that a checkpoint knows what it was made with."""

import json
import weakref
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method

from .checkpoint import digest

HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
HIDDEN = vars(nn.Module()).keys()  # what PyTorch keeps in every module: tensors, hooks, a mode


def network(net: nn.Module) -> dict:
    """Every plain attribute of every module of ``net``, by path; names, shapes, frozen ones.

    Values of parameters are left to the starting point. Raises SettingsError as `written` does.
    """
    modules, params = dict(net.named_modules()), dict(net.named_parameters(remove_duplicate=False))
    known = {id(part): name for name, part in (modules | params).items()}
    values = params | dict(net.named_buffers())
    return {
        "modules": {
            name: [
                written(type(module), name),
                {
                    key: written(value, f"the network's {f'{name}.{key}'.lstrip('.')}", known)
                    for key, value in vars(module).items()
                    if key not in HIDDEN
                }
                | {
                    key: written(list(hooks.values()), f"a hook of the network's {name}", known)
                    for key in HOOKS
                    if (hooks := vars(module).get(key))
                },
            ]
            for name, module in modules.items()
        },
        "values": {n: [str(v.dtype), list(v.shape)] for n, v in values.items()},
        "frozen": [n for n, p in params.items() if not p.requires_grad],
    }


def written(value: Any, where: str, known: dict | None = None, inside: tuple = ()) -> object:
    """``value`` as JSON: numbers and texts as they are, others by class and by what is in them.

    Functions and classes go by qualified name, tensors by contents, and objects by what pickle
    would keep of them (nothing is pickled). ``known`` names, by id, parts written elsewhere.

    Raises SettingsError, which names ``where``, for what has no name or no contents to write down.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if known and id(value) in known:
        return {"part": known[id(value)]}
    if id(value) in inside:
        raise _unwritten(where, value, "it is part of itself")
    inside = (*inside, id(value))

    def within(part: object) -> object:
        return written(part, where, known, inside)

    kind = type(value).__qualname__
    if type(value) in (list, tuple, torch.Size):
        return {kind: [within(v) for v in value]}
    if type(value) is dict:
        return {kind: [[within(k), within(v)] for k, v in value.items()]}
    if type(value) in (set, frozenset):
        return {kind: sorted((within(v) for v in value), key=json.dumps)}
    if type(value) is bytes:
        return {kind: value.hex()}
    if isinstance(value, Tensor):
        return {"tensor": [str(value.dtype), list(value.shape), digest(value)]}
    if isinstance(value, weakref.ref):
        return within(value())
    if isinstance(value, ModuleType):
        return {"import": value.__name__}
    if isinstance(value, type | FunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
        if "<lambda>" in name:
            raise _unwritten(where, value, "two of them cannot be told apart")
        held = [c.cell_contents for c in getattr(value, "__closure__", None) or ()]
        held += [getattr(value, "__defaults__", None), getattr(value, "__kwdefaults__", None)]
        held = held if any(part is not None for part in held) else []
        return {"name": name} | ({"holds": within(held)} if held else {})
    try:
        state = value.__reduce_ex__(2)
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise _unwritten(where, value, str(error)) from error
    if isinstance(state, str):
        return {kind: state}
    return {kind: [within(list(part) if hasattr(part, "__next__") else part) for part in state]}


def _unwritten(where: str, value: object, why: str) -> SettingsError:
    return SettingsError(
        f"{where} is {value!r:.80}, which a checkpoint cannot write down ({why}); make it a "
        "number, a text, a named function, a tensor or a list of these, or run without saving "
        "(saved=None)"
    )


def told_apart(method: Method) -> object:
    """What tells ``method`` from another of its class; itself, where that cannot be said."""
    try:
        return written(method, "the method")
    except SettingsError:
        return id(method)
