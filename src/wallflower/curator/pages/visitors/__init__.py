"""Who is at the pages: one visit, its session, where they wanted to go, and the token entered again."""
