"""Stored features: what a frozen network says about each row of a set."""
