"""lgfed: personalised and fair federated learning, reproduced from three lines of work."""

__version__ = "0.1.0"
