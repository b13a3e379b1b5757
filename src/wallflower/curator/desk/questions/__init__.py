"""Questions on their way to an answer: whose turn it is, jobs, watches and their feeds, curves to choose by."""
