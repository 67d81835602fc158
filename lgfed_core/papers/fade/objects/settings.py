"""Settings of the page on objects: the text's values, and the released code's where it has none."""

from dataclasses import dataclass
from typing import ClassVar

from lgfed_core.errors import SettingsError
from lgfed_core.methods.cdan import CDAN, ENTROPY
from lgfed_core.methods.dann import DANN
from lgfed_core.methods.shot import CDANSHOT, SHOT
from lgfed_core.models.objects import CONDITIONAL
from lgfed_core.papers.settings import FROM_0, REST, Checked, Range

from . import domains

METHODS = {"dann": DANN, "cdan": CDAN, "shot": SHOT, "dann+shot": SHOT, "cdan+shot": CDANSHOT}
USERS = ("noniid", "noniid15", "iid")
BACKBONES = ("resnet50", "inception_v3", "mobilenet_v2")
SCALES = {
    "smoke": dict(
        data="digits",
        tasks=("M->U",),
        users=("noniid",),
        noniid=6,
        components=10,
        pretraining=4,
        rounds=4,
        looks=2,
        methods=("cdan", "dann+shot"),
        central_methods=("shot",),
    ),
    "quick": dict(
        data="digits",
        tasks=("U->M",),
        users=("noniid",),
        noniid=6,
        components=128,
        pretraining=25,
        rounds=30,
        looks=5,
        central_methods=("cdan", "shot"),
    ),
    "paper": {},
}


@dataclass(frozen=True)
class Settings(Checked):
    """The text's values; where it gives none, those of the released code."""

    data: str = "office31"
    backbone: str = "inception_v3"
    components: int = 256  # principal ones of the features
    tasks: tuple[str, ...] = domains.TASKS["office31"]
    users: tuple[str, ...] = USERS
    noniid: int = 20  # classes of a user where users are "noniid"
    methods: tuple[str, ...] = tuple(METHODS)
    central_methods: tuple[str, ...] = tuple(METHODS)
    per_round: tuple[int, ...] = (2,)  # users that take part in a round
    target_users: int = 3
    pretraining: int = 25  # rounds on the source alone
    rounds: int = 100
    steps: int = 10  # of a round, divided among its users
    batch_size: int = 32
    lr: float = 0.01  # of adaptation
    pretraining_lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.001
    beta: float = 0.5
    weight: float = 1.0  # of the adversarial loss
    smoothing: float = 0.1
    dropout: float = 0.5
    conditional: str = "mixed"
    entropy: str = "weighs"
    information: float = 1.0
    relabelled: float = 0.3
    least: int = 0
    looks: int = 10  # measurements on the way

    RANGES: ClassVar = dict(smoothing=REST, relabelled=Range(0), least=FROM_0)
    CHOICES: ClassVar = dict(scale=SCALES, data=domains.TASKS, backbone=BACKBONES, users=USERS)
    CHOICES |= dict(methods=METHODS, central_methods=METHODS)
    CHOICES |= dict(conditional=CONDITIONAL, entropy=ENTROPY)
    EMPTY = frozenset({"methods", "central_methods"})

    def fits(self) -> None:
        super().fits()
        if unknown := set(self.tasks) - set(known := domains.TASKS[self.data]):
            raise SettingsError(f"tasks has {sorted(unknown)}; there are {', '.join(known)}")
        if wrong := [m for m in self.per_round if m > 1 + self.target_users]:
            raise SettingsError(
                f"per_round has {wrong}; from 1 to {1 + self.target_users} users take part"
            )

        n, stride = domains.classes(self.data), domains.STRIDES[self.data]
        for kind in self.users:
            each = self.classes(kind, n)
            owned = domains.classes_of(self.target_users, n, each, stride)
            if nobodys := n - len({c for mine in owned for c in mine.tolist()}):
                raise SettingsError(
                    f"users has {kind}: with target_users {self.target_users} and {each} classes "
                    f"each (noniid is {self.noniid}), {nobodys} of the {n} classes of data "
                    f"{self.data} belong to nobody; raise one of them"
                )

    def classes(self, users: str, classes: int) -> int:
        """How many of all ``classes`` a target user has."""
        return {"noniid": self.noniid, "noniid15": 15, "iid": classes}[users]

    @property
    def central_rounds(self) -> int:
        """Central steps, of a batch of each domain: as many batches as in a federated run. SHOT's
        are of the target alone, and so half as many."""
        return max(1, self.rounds * self.steps // 2)

    @property
    def games(self) -> list[tuple[str, int]]:
        """(method, how many users a round) of each federated part of a task."""
        return [(method, many) for many in self.per_round for method in self.methods]

    @property
    def bottlenecks(self) -> list[str]:
        """Those that the methods need; "relu" in any case."""
        wanted = {bottleneck(m) for m in (*self.methods, *self.central_methods)}
        return [kind for kind in ("relu", "norm") if kind == "relu" or kind in wanted]


def bottleneck(method: str) -> str:
    """The bottleneck of a method, as released: SHOT has batch normalisation."""
    return "norm" if "shot" in method else "relu"
