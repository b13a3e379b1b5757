"""Pages for everybody with a token: data sets, questions from plan to release, streams, requests for budget, lists."""
