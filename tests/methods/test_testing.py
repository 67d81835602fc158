"""A method that breaks a promise is told which, and what to do; one broken method for each."""

import unittest
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core import Method, Step, cross_entropy
from lgfed_core.errors import ContractError, LgfedError, SettingsError
from lgfed_core.methods import FedAvg, LGFedAvg, LGFedAvgV1, LocalOnly
from lgfed_core.testing import NotTested, check_method, everything, promises
from toy import answering, python

HEAD = frozenset({"classifier.weight", "classifier.bias"})
SEEN: list[torch.Tensor] = []  # where a method puts what it should not keep


class Counts(FedAvg):
    """A loss that weighs by how often it was called, from the second round on."""

    def loss(self, local, batch):
        if local.round:
            SEEN.append(torch.zeros(()))
        return super().loss(local, batch) / (1 + len(SEEN) % 3 * bool(local.round))


class Remembers(FedAvg):
    """A server's momentum, kept in the method."""

    def server_update(self, before, average):
        change = average - before + 0.5 * getattr(self, "change", 0)
        object.__setattr__(self, "change", change)
        return before + change


class Leaks(LGFedAvg):
    """Sends private parameters in the place of shared ones."""

    def loss(self, local, batch):
        SEEN.append(local.params["head.bias"].detach())
        return super().loss(local, batch)

    def treat(self, before, upload, rng):
        return torch.cat([SEEN[-1], upload[len(SEEN[-1]) :]])


class Slips(Leaks):
    """Sends some of the private numbers only: those that ``at`` names, where they lie."""

    at: slice = slice(None)

    def loss(self, local, batch):
        SEEN.append(local.params["head.weight"].detach().flatten())
        return super(Leaks, self).loss(local, batch)

    def treat(self, before, upload, rng):
        out = upload.clone()
        place = slice(self.at.start, min(len(out), self.at.stop), self.at.step)
        out[place] = SEEN[-1][place]
        return out


class Hides:
    def treat(self, before, upload, rng):
        return upload.nan_to_num()


def usual(local, batch):
    return cross_entropy(local.net(batch.x), batch)


def each(local, batch, y):
    return F.cross_entropy(local.net(batch.x), y, reduction="none")


def loses(make, **more):
    """A method whose loss this makes of local and batch."""
    return answering(loss=lambda self, *told: make(*told), **more)


def creeps(self, local, batch):
    """Moves all parameters where a loss should only read them."""
    for value in local.params.values():
        value.data.add_(0.1)
    return usual(local, batch)


def keeps(make):
    """One whose private parameters are these after a round."""
    mine = answering(LGFedAvg, finish=lambda self, all: (all.shared, make(all.own)))
    return mine(layers=HEAD)


def shares(make):
    """One that weighs uploads so, by the numbers of their rows."""
    return answering(weights=lambda self, rows: make(rows))


def merges(make):
    return answering(aggregate=lambda self, uploads, weights: make(uploads))


NO_NUMBER = loses(lambda local, batch: local.net(batch.x))
SHRINKS = answering(aggregate=lambda self, *told: 0.9 * FedAvg.aggregate(self, *told))
BROKEN = [  # the promise, a method, what is seen and what to do
    ("trains", NO_NUMBER, "it has to be one number", "give net="),
    ("trains", answering(aggregate=lambda self, u, w: setattr(self, "weighted", u)),
     "`server_memory`", "give net="),
    ("padding", loses(lambda local, batch: each(local, batch, batch.y).max()),
     "such rows more the gradient is off by", "batch.mean"),
    ("lanes", Counts, "after two rounds they are", "no count of its calls"),
    ("plain_sgd", SHRINKS, "after two rounds it is", "that upload"),
    ("resumes", Remembers, "stopped after round 2 of 4: shared is", "the checkpoint has it"),
    ("frozen", answering(LGFedAvg, loss=creeps)(layers=HEAD), "has moved by", "leave them alone"),
    ("nothing", answering(server_update=lambda self, before, average: 0.99 * average),
     "shared parameters have moved", "server_update"),
    ("leaves", Leaks(layers=HEAD, upload=(Leaks(layers=HEAD),)),
     "private numbers among those sent", "put aside"),
    ("weights", shares(lambda rows: rows.float()), "a sum of", "rows / rows.sum()"),
    ("weights", shares(lambda rows: torch.arange(1.0, len(rows) + 1) / sum(range(len(rows) + 1))),
     "in another order", "rows / rows.sum()"),
    ("equal_uploads", SHRINKS, "an average", "server_update"),
    ("server", merges(lambda uploads: uploads[torch.randint(len(uploads), ())]),
     "from what their uploads give", "nothing random"),
    ("own_rows", keeps(lambda own: own.mean(0).expand_as(own)), "what others keep is",
     "treat each row"),
    ("renaming", merges(lambda uploads: uploads[0]), "called 0 to 3 end", "whatever their place"),
    ("labels", answering(unlabelled=True), "IndexError: Target -1 is out of bounds",
     "batch.y >= 0"),
    ("labels", loses(lambda local, batch: batch.mean(each(local, batch, batch.y.clamp(min=0))),
                     unlabelled=True), "train as rows of class 0", "batch.y >= 0"),
    ("groups", loses(lambda local, batch: usual(local, batch) * batch.groups.sum().clamp(1, 1)),
     "names no groups", "batch.attributes"),
    ("few_rows", loses(lambda local, batch: usual(local, batch) + local.net(batch.x).std(0).sum()),
     "what client 1 sent is not finite", "no deviation over rows"),
    ("not_finite", FedAvg(upload=(Hides(),)), "a loss of NaN on device 2, and no word of it",
     "pass through `upload`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "seen", "do"), BROKEN)
def test_a_broken_promise_is_named_with_what_was_seen_and_what_to_do(name, method, seen, do):
    (promise,) = [one for one in promises(method) if str(one) == name]
    with pytest.raises(ContractError) as found:
        promise()
    (line,) = found.value.broken
    assert line.startswith(f"{name}: {promise.said}. Seen: ")
    assert seen in line and do in line.partition(" Do: ")[2]
    assert str(found.value) == f"{type(promise.stage.method).__name__} breaks {line}"
    assert isinstance(found.value, AssertionError) and isinstance(found.value, LgfedError)


def test_every_promise_has_a_method_that_breaks_it():
    assert {name for name, *_ in BROKEN} == {str(one) for one in promises(FedAvg)}


def test_a_check_names_all_that_is_broken_at_once():
    with pytest.raises(ContractError, match="^Mine breaks 3 of 17 promises") as found:
        check_method(SHRINKS)
    names = [line.partition(":")[0] for line in found.value.broken]
    assert names == ["plain_sgd", "nothing", "equal_uploads"]
    assert str(found.value).count("\n- ") == 3
    left = check_method(SHRINKS(), skip=names)
    assert left.untested == dict.fromkeys(names, "skipped") and len(left.kept) == 14
    with pytest.raises(SettingsError, match="a name in skip 'typo' is none of trains, padding"):
        check_method(SHRINKS, skip=["typo"])


def test_what_leaves_the_finite_numbers_breaks_two_promises_and_the_others_are_not_tested():
    deviates = loses(lambda local, batch: usual(local, batch) + local.net(batch.x).std(0).sum())
    with pytest.raises(ContractError) as found:
        check_method(deviates)
    assert [line.partition(":")[0] for line in found.value.broken] == ["trains", "few_rows"]
    assert "or a gradient is NaN" in found.value.broken[0]


def test_what_does_not_train_breaks_one_promise_and_the_others_are_not_tested():
    due = {str(one): one for one in promises(NO_NUMBER)}
    with pytest.raises(NotTested, match="Mine does not train: Mine gives a loss of"):
        due["resumes"]()
    due["weights"]()
    with pytest.raises(ContractError, match="breaks 1 of 17"):
        check_method(NO_NUMBER)


def small(inputs, classes, hidden=5):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))


def wide(inputs, classes):
    return nn.Sequential(
        nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, classes)
    )


@pytest.mark.parametrize("at", [slice(0, 16, 2), slice(0, 2)], ids=["scattered", "neighbours"])
def test_a_few_private_numbers_that_are_sent_are_found(at):
    mine = answering(Slips, at=at)
    due = {str(one): one for one in promises(mine(layers=HEAD, upload=(mine(layers=HEAD),)))}
    with pytest.raises(ContractError, match="private numbers among those sent"):
        due["leaves"]()


def test_few_private_numbers_beside_many_shared_ones_break_no_promise():
    """A head of 650 numbers, of which one or two are found among 50,000 by chance."""

    def body(net):
        names = (name for name, _ in net.named_parameters() if not name.startswith("2."))
        return LGFedAvg(layers=frozenset(names))

    for inputs in (784, 256, 700, 800):
        middling = partial(small, hidden=64)
        due = {str(one): one for one in promises(body, middling, inputs=inputs, classes=10)}
        due["leaves"]()


@dataclass(frozen=True, kw_only=True)
class HeadFirst(FedAvg):
    def shared(self, net):
        return frozenset({"0.weight", "0.bias"})

    def steps(self, net):
        head, body = frozenset({"2.weight", "2.bias"}), self.shared(net)
        return Step(self.loss, head, part=(0, 0.5)), Step(self.loss, body, part=(0.5, 1))


@pytest.mark.parametrize("seed", [2, 4])  # with 8 and 14 numbers in both
def test_layers_whose_first_weights_are_on_one_grid_break_no_promise_by_chance(seed):
    torch.manual_seed(seed)
    due = promises(HeadFirst(), small(784, 10, hidden=256), inputs=784, classes=10)
    {str(one): one for one in due}["leaves"]()


def test_chance_and_rounding_in_a_wide_network_break_no_promise():
    lower = frozenset({"0.weight", "0.bias"})
    kinds = lambda net: LGFedAvg(layers=frozenset(dict(net.named_parameters())) - lower)  # noqa: E731
    due = {str(one): one for one in promises(kinds, wide, inputs=784, classes=10)}
    due["leaves"](), due["lanes"]()
    steep = loses(lambda local, batch: 60 * usual(local, batch))
    due = {str(one): one for one in promises(steep, wide, inputs=784, classes=10)}
    due["lanes"]()


def test_an_error_in_a_method_is_named_with_its_kind_and_its_line():
    slips = merges(lambda uploads: {}["b"])
    with pytest.raises(ContractError, match=r"KeyError: 'b' \(test_testing\.py, line \d+: slips"):
        check_method(slips)


def test_a_method_comes_as_an_instance_a_class_or_a_function_of_the_network():
    upper = {"own.weight", "own.bias", "adversary.weight", "adversary.bias"}
    names = [n for n, _ in everything().named_parameters()]
    (first, *_) = promises(LGFedAvg)
    assert upper <= first.stage.method.layers == frozenset(names[len(names) // 2 :])
    (first, *_) = promises(lambda net: LGFedAvg(layers={next(iter(dict(net.named_parameters())))}))
    assert first.stage.method.layers == {names[0]}
    for wrong, said in (
        (3, "3 is no Method"),
        (Step, "is no Method"),
        (lambda net: net, "is no Method"),
    ):
        with pytest.raises(SettingsError, match=said):
            promises(wrong)


def pictures():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 3))


def noisy(inputs, classes):
    return nn.Sequential(
        nn.Linear(inputs, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, classes)
    )


def test_what_cannot_be_checked_is_refused_by_name():
    for more, said in (
        (dict(method=LGFedAvgV1), r"needs layers, auxiliary: give LGFedAvgV1\(layers=..., aux"),
        (dict(method=FedAvg, net=3), "net is 3; give a network"),
        (dict(method=FedAvg, net=lambda: 3), "net makes 3; it has to make a network"),
        (dict(method=FedAvg, inputs=8), "the usual network takes 4 inputs"),
        (dict(method=FedAvg, net=small, inputs=()), r"inputs is \(\)"),
        (dict(method=FedAvg, net=small, classes=1), "2 classes"),
    ):
        with pytest.raises(SettingsError, match=said):
            promises(**more)
    with pytest.raises(ContractError, match="trains: .* does not take rows of shape .* give net="):
        check_method(FedAvg, small(7, 4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "more", "untested"),
    [
        (small, dict(inputs=7, classes=3, groups=0), set()),
        (small(6, 5), dict(inputs=6, classes=5), set()),
        (pictures, dict(inputs=(1, 6, 6), classes=3), set()),
        (noisy, {}, {"lanes", "plain_sgd", "renaming", "few_rows"}),
    ],
)
def test_networks_of_ones_own_are_taken_and_what_they_rule_out_is_said(net, more, untested):
    before = torch.random.get_rng_state()
    found = check_method(LGFedAvg, net, **more)
    assert set(found.untested) == untested and len(found.kept) + len(untested) == 17
    assert torch.equal(torch.random.get_rng_state(), before)  # nobody else's numbers have moved
    said = f"LGFedAvg keeps {len(found.kept)} promises of the contract"
    assert str(found).startswith(said) and all(f"{name} (" in str(found) for name in untested)


# of another root
PULLS = answering(Method, steps=lambda self, net: (Step(self.loss, pull=0.1),))


def test_methods_say_what_is_not_tested():
    assert set(check_method(PULLS()).untested) == {"plain_sgd"}


def test_the_checks_need_no_pytest():
    code = (
        "import sys; sys.modules['pytest'] = None; import lgfed_core; "
        "skip = 'resumes', 'renaming', 'not_finite'; "
        "lgfed_core.testing.check_method(lgfed_core.FedAvg, skip=skip)"
    )
    python(code, check=True)


def test_what_is_not_tested_is_shown_as_skipped():
    (server,) = [one for one in promises(LocalOnly()) if str(one) == "server"]
    with pytest.raises(unittest.SkipTest, match="LocalOnly shares no parameter"):  # pytest's too
        server()
