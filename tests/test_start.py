"""The face and the command line answer at once: nothing heavy is imported for names and words."""

import sys
from importlib import import_module

import pytest

import lgfed_core
from lgfed_core.errors import LgfedError
from lgfed_core.papers import command_checks, experiment, experiments
from toy import NOTEBOOKS, cells, python

HEAVY = {"torch", "pandas", "scipy", "matplotlib", "sklearn"}
WORDS = (
    "--version",
    "list",
    "data",
    "data nope",
    "run nope",
    "run lgfedavg.mnist --scale nope",
    "run lgfedavg.mnist --protocol nope",
    "run lgfedavg.mnist --device nope",
    "run lgfedavg.mnist --lanes nope",
    "run lgfedavg.mnist --seeds nope",
    "fill --hours -1",
    "fill --device nope",
    "fill --only nope",
    "report nope",
)
CODE = """
import sys
from lgfed_core.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("line", WORDS)
def test_a_word_is_answered_without_a_heavy_import(line):
    done = python(CODE, *line.split(), check=True)
    assert not HEAVY & set(done.stdout.splitlines()[-1].split())
    assert "nope" not in line or "nope" in done.stderr
    assert line != "run nope" or "no experiment is called 'nope'" in done.stderr


PAGES = {f"{experiments.__package__}.{place.module}" for place in experiments.PLACES.values()}
LATE = {"scipy.stats", "scipy.optimize", "matplotlib", "sklearn", "torchvision"}


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("lgfedavg.mnist", LATE),  # a run does not wait for what figures and verdicts need
        ("answer_box", PAGES),  # to read a page is not to read all: it knows them by name alone
    ],
)
def test_what_is_needed_later_is_imported_later(module, late):
    code = f"import sys, {experiments.__package__}.{module}; print(*sys.modules)"
    assert not late & set(python(code, check=True).stdout.split())


@pytest.mark.parametrize("name", experiments.PLACES)
def test_the_table_of_experiments_agrees_with_their_modules(name):
    place, found = experiments.PLACES[name], experiments.find(name)
    page = import_module(type(found).__module__)
    assert page.__name__ == f"{experiments.__package__}.{place.module}"
    assert vars(page)[place.attribute] is found and found.name == name
    assert page.__doc__.splitlines()[0] == place.words
    assert tuple(found.scales) == command_checks.SCALES


def test_every_experiment_has_its_place():
    for name in experiments.PLACES:
        experiments.find(name)
    pages = {kind.__module__ for kind in _below(experiment.Experiment) if "name" in vars(kind)}
    pages = {page for page in pages if page.startswith(experiments.__package__)}
    pages &= sys.modules.keys()  # what other tests have made is gone
    pages -= {f"{experiments.__package__}.everywhere.compare.experiment"}  # a user's method
    assert pages == PAGES


def _below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@pytest.mark.parametrize(
    ("check", "given"),
    [
        (command_checks.run, ("lgfedavg.mnist", "smoke", "both", "auto", "auto")),
        (command_checks.fill, (1.0, "cpu")),
    ],
)
def test_what_is_right_passes(check, given):
    check(*given)
    with pytest.raises(LgfedError, match="'tpu' is none of auto, cpu, cuda"):
        check(*("tpu" if word in command_checks.DEVICES else word for word in given))


def test_pages_import_their_experiments():
    """The build knows by its imports what a page is made of; a name that is looked up is none."""
    for page in NOTEBOOKS:
        assert not [source for source, _ in cells(page, "code") if "experiments.find" in source]


def test_what_the_face_lists_is_there():
    for name in dir(lgfed_core):
        assert getattr(lgfed_core, name) is not None, name


def test_a_room_is_there_before_anybody_has_imported_it():
    code = (
        "import sys, lgfed_core; assert 'torch' not in sys.modules and 'run' in dir(lgfed_core); "
        "assert lgfed_core.partition.Partition is lgfed_core.Partition"
    )
    python(code, check=True)
