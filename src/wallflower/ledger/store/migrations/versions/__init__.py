"""The revisions, oldest first; a published one never changes."""
