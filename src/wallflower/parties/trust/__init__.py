"""Who is believed in a stream: certificates of one authority, those it took back, and what the owner signed."""
