"""What users give, refused by name before anything trains; `prepare` calls it, once."""
