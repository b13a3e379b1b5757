"""What the pages say: in which language, and where a budget stands in plain words."""
