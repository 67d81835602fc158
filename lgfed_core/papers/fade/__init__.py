"""FADE (Hong et al., KDD 2021)."""
