"""The methods of the papers, and those that came after LG-FedAvg, one short file each."""

from .apfl import APFL as APFL
from .cgau import (
    ClientBaseline as ClientBaseline,
    ClientRowsAveraged as ClientRowsAveraged,
    ClientRowsKept as ClientRowsKept,
)
from .ditto import Ditto as Ditto
from .fade import FADE as FADE
from .fair import FairLGFedAvg as FairLGFedAvg, WatchedFedAvg as WatchedFedAvg
from .fedavg import FedAvg as FedAvg
from .fedbabu import FedBABU as FedBABU
from .fedbn import FedBN as FedBN
from .fednova import FedNova as FedNova
from .fedper import FedPer as FedPer
from .fedprox import FedProx as FedProx
from .fedrep import FedRep as FedRep
from .interface import (
    Batch as Batch,
    Local as Local,
    Method as Method,
    Step as Step,
    cross_entropy as cross_entropy,
)
from .lgfedavg import LGFedAvg as LGFedAvg
from .lgfedavg_v1 import LGFedAvgV1 as LGFedAvgV1
from .local import LocalOnly as LocalOnly
from .mtl import MTL as MTL, ReleasedMTL as ReleasedMTL
from .participants import Arrived as Arrived, Trained as Trained
from .perfedavg import PerFedAvg as PerFedAvg
from .pfedme import PFedMe as PFedMe
from .qffl import QFFL as QFFL
from .scaffold import Scaffold as Scaffold
from .server_optimisers import FedAdam as FedAdam, FedAvgM as FedAvgM, FedYogi as FedYogi
