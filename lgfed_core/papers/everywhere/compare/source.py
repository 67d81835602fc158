"""Your code: where it lies, what of it is loaded, in what a method of yours differs from ours."""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import Any

from lgfed_core.errors import NOT_YOURS, SettingsError, in_a_line
from lgfed_core.methods import Method
from lgfed_core.papers import command_checks

CONSTANTS = (bool, int, float, complex, str, bytes, NoneType)
# answers that are not asked for where another stands, which is asked in their place
ASKED = {"merge": ("aggregate", "server_update", "server_step"), "server_step": ("server_update",)}


def load(place: object) -> object:
    """What "FILE.py:NAME" or "package.module:NAME" names; anything but a text as it is.

    Raises SettingsError for a file that does not exist or does not run, and for a name that it
    does not have.
    """
    if not isinstance(place, str):
        return place
    where, name = command_checks.place(place)
    module = _module(where)
    if not hasattr(module, name):
        there = [n for n, v in vars(module).items() if is_method(v)]
        some = f"; it has {', '.join(there)}" if there else ""
        raise SettingsError(f"{where} has nothing called {name!r}{some}")
    return getattr(module, name)


def is_method(found: object) -> bool:
    """Whether it is a class of methods."""
    return isinstance(found, type) and issubclass(found, Method)


def _module(where: str) -> ModuleType:
    path = Path(where).expanduser()
    if path.suffix != ".py":
        try:
            return importlib.import_module(where)
        except Exception as error:
            raise SettingsError(f"{where} cannot be imported: {in_a_line(error)}") from error
    name = f"lgfed_compared_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{where} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickled workers look it up there
    sys.path.insert(0, str(path.resolve().parent))  # its own neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SettingsError(f"{where} does not run: {in_a_line(error)}") from error
    finally:
        sys.path.pop(0)
    return module


def classes(method: object) -> list[type]:
    """The classes of a method that are yours, its own first; none of what is no method."""
    kind = method if isinstance(method, type) else type(method)
    mro = kind.__mro__ if issubclass(kind, Method) else ()
    return [one for one in mro if one is not object and not _ours(one)]


def differs(method: object) -> str:
    """In what a method of yours differs from the one that it derives from, in a sentence, and which
    functions of it nothing calls: "Mine.agregate is never called; did you mean aggregate?".
    """
    mine = classes(method)
    if not mine:
        return ""
    base = next(one for one in mine[0].__mro__ if _ours(one))
    answers = {name for one in base.__mro__ for name in vars(one) if not name.startswith("_")}
    answers |= {field.name for field in fields(base)}  # those without a default, too
    own = dict.fromkeys(name for one in mine for name in vars(one) if not name.startswith("_"))
    named = [name for name in own if name in answers]
    said = [f"its own {', '.join(named)}" if named else "nothing of its own"]
    said = [f"{mine[0].__name__} is {base.__name__} with {said[0]}."]
    written = [(one, name, what) for one in mine for name, what in vars(one).items()]
    functions = [(*where, what) for *where, what in written if inspect.isfunction(what)]
    used = answers.union(*(_names(what.__code__) for *_, what in functions))
    for one, name, _ in functions:
        if name not in used and name[0] != "_":
            near = difflib.get_close_matches(name, answers, 1, 0.8)
            meant = f"; did you mean {near[0]}?" if near else ", by the engine or by the class."
            said.append(f"{one.__name__}.{name} is never called{meant}")
    return " ".join([*said, *_silenced(mine[0], named)])


def _silenced(kind: type[Method], own: Iterable[str]) -> list[str]:
    """Which of its ``own`` answers nobody asks for, as another one does what they would."""
    out = []
    for asked, others in ASKED.items():
        found = getattr(kind, asked, None)
        stands = found is not None and found is not getattr(Method, asked)
        if asked == "server_step":
            stands &= kind.server_memory > 0
        out += [
            f"{kind.__name__}.{name} is never called: {asked} answers in its place."
            for name in others
            if name in own and stands and asked not in own
        ]
    if "server_step" in own and not kind.server_memory:
        out.append(f"{kind.__name__}.server_step is never called: server_memory is 0.")
    return out


def _names(code: CodeType) -> set[str]:
    """The names that a function uses, and those of the functions in it."""
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def fingerprint(name: str, settings: Mapping[str, Any], given: Iterable[object]) -> str:
    """Of settings and of all code of yours behind what was ``given``."""
    text = [name, repr(sorted(settings.items()))]
    for one in given:
        for kind in (*classes(one), one):
            text += [_text(kind), *(_beside(function, set()) for function in _functions(kind))]
        text.append("" if callable(one) or one is None else repr(one))
    text += [path.read_text(encoding="utf-8") for path in files(given)]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()[:12]


def _functions(kind: Any) -> list[FunctionType]:
    """A function itself, or those of a class that you have written in a file or a notebook."""
    found = vars(kind).values() if isinstance(kind, type) else [kind]
    return [one for one in found if inspect.isfunction(one) and _written(one)]


def _written(function: FunctionType) -> bool:
    place = function.__code__.co_filename  # of a notebook's cell, a file that does not exist
    made = place == "<string>" or Path(place).exists()  # a dataclass's, a library's
    return _file(function) is not None or not made


def _beside(function: FunctionType, seen: set[FunctionType]) -> str:
    """The constants that a function reads from where it was made, and your functions likewise."""
    seen.add(function)
    try:
        found = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # made of nothing that can be read, or before a name is bound
        return ""
    text = []
    for name, value in sorted((found.globals | found.nonlocals).items()):
        parts = value if isinstance(value, tuple | frozenset) else [value]
        near = inspect.isfunction(value) and _written(value)
        if all(isinstance(one, CONSTANTS) for one in parts):
            text.append(f"{name}={value!r}")
        elif near and value not in seen:
            text += [name, _text(value), _beside(value, seen)]
    return "\n".join(text)


def files(given: Iterable[object]) -> list[Path]:
    """Your files behind what was ``given``, with all modules beside them that are imported."""
    kinds = [kind for one in given for kind in (*classes(one), one)]
    first = {path for kind in kinds if (path := _file(kind))}
    others = (path for module in [*sys.modules.values()] if (path := _file(module)))
    return sorted(first | {p for p in others if any(p.is_relative_to(f.parent) for f in first)})


def _ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == Method.__module__.partition(".")[0]


def _file(found: Any) -> Path | None:
    """The file of a class, function or module of yours; none of this package's or a library's."""
    try:
        path = Path(inspect.getsourcefile(found) or "")
    except (TypeError, OSError):  # made by an instance, in a notebook, or without a file
        return None
    yours = path.suffix == ".py" and not any(path.is_relative_to(place) for place in NOT_YOURS)
    return path.resolve() if yours and path.is_file() else None


def _text(found: Any) -> str:
    """What a class or function of a notebook says; nothing of one that has a file."""
    if _file(found) or not (inspect.isfunction(found) or isinstance(found, type)):
        return ""
    try:
        return "".join(map(inspect.getsource, _functions(found) or [found]))
    except (TypeError, OSError):
        return repr(found)
