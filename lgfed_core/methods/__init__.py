"""The methods of the papers, one short file each."""

from .cgau import (
    ClientBaseline as ClientBaseline,
    ClientRowsAveraged as ClientRowsAveraged,
    ClientRowsKept as ClientRowsKept,
)
from .fade import FADE as FADE
from .fair import FairLGFedAvg as FairLGFedAvg, WatchedFedAvg as WatchedFedAvg
from .fedavg import FedAvg as FedAvg
from .fedprox import FedProx as FedProx
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
from .qffl import QFFL as QFFL
