"""What the service does and remembers, without HTTP: the desk, its jobs, data sets, tokens, watches and logs."""
