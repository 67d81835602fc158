"""From a stored row to a verdict: our numbers, the papers', and what they say together."""
