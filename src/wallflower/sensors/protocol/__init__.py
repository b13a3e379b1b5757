"""What goes between the parties, in order: sealed frames of readings, the rounds of the two servers, and findings."""
