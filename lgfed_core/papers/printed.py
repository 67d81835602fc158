"""Every printed table of the papers, by its file in data/paper."""

from lgfed_core.evidence.printed import Table

from .cgau import printed as cgau
from .fade import printed as fade
from .lgfedavg import printed as lgfedavg

TABLES: dict[str, Table] = lgfedavg.TABLES | cgau.TABLES | fade.TABLES
