"""What the program needs of the machine under it: files, compiled loops, slow modules, a port, values under a key."""
