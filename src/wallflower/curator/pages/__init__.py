"""The service for people: pages under /ui, their forms, charts and sessions."""
