"""What is measured on predictions and representations."""
