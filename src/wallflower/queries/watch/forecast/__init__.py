"""What to expect of a watch, from public numbers alone: what is stated, how likely flags are, and what it is worth."""
