"""What a detector needs of every context: sums per record, and local outlier factors."""
