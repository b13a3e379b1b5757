"""A question as a web form: its fields, what they offer and suggest, and what is typed into them, as a question."""
