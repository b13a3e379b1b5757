"""The data sets of the service: where they are kept, and what a steward needs to register one."""
