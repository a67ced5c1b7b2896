"""What `--help` says; one text for each verb, and every key with its default and choices."""
