"""Forecasts of a watch from public numbers alone: rates of mechanisms, stated populations, and the plan."""
