"""The same methods as a Flower app: rounds over real machines, one file of data on each.

`plan.Plan` says what is trained, `nodes.write_nodes` gives each device its rows in a folder,
`server.server_app` and `client.client_app` are what `flwr run` starts, and `loopback.Loopback` has
all of it on one machine. The folder ``app`` is an app of one file. Needs the extra ``flower``.
"""

from .nodes import write_nodes as write_nodes
from .plan import Plan as Plan
