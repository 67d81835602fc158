"""What is worth running next, and running it."""
