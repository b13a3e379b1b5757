"""What each party does in a window, step by step: a device, the two servers and the owner."""
