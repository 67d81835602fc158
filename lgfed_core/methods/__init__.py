"""The methods of the papers, one short file each."""

from .cgau import ClientBaseline as ClientBaseline
from .cgau import ClientRowsAveraged as ClientRowsAveraged
from .cgau import ClientRowsKept as ClientRowsKept
from .fade import FADE as FADE
from .fair import FairLGFedAvg as FairLGFedAvg
from .fair import WatchedFedAvg as WatchedFedAvg
from .fedavg import FedAvg as FedAvg
from .fedprox import FedProx as FedProx
from .lgfedavg import LGFedAvg as LGFedAvg
from .lgfedavg_v1 import LGFedAvgV1 as LGFedAvgV1
from .local import LocalOnly as LocalOnly
from .method import Batch as Batch
from .method import Local as Local
from .method import Method as Method
from .method import Step as Step
from .method import cross_entropy as cross_entropy
from .mtl import MTL as MTL
from .mtl import ReleasedMTL as ReleasedMTL
