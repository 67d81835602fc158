"""LG-FedAvg (Liang et al., 2019 and 2020)."""
