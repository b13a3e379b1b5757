"""The service for programs: routes under /v1, who calls them, what they take and give."""
