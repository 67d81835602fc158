"""One wing a paper, one folder a page: its experiment, tables, claims and figures."""
