"""What draws: pictures of releases, charts of plans, bars and timelines, as SVG, and the tables under them."""
