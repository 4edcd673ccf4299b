"""Corruptions of the world: noise, blur, weather, color and compression, at named severities."""
