"""The routes under /v1: for everybody with a token, for stewards, for watches and for requests for budget."""
