"""The questions, one room each."""
