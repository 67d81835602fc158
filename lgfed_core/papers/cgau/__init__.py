"""CGAU (Rieger et al., 2020)."""
