"""Every method on every task: a question of our own, beside the papers."""
