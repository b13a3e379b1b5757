"""The messages between the parties of a stream: frames, the rounds of the two servers, and their findings."""
