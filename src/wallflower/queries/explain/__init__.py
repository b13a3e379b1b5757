"""In which context is this record an outlier: the exact engine; nothing is released from here yet."""
