"""Engines: how the ranks of a topology are started. One file each, one line in `ENGINES`."""
