"""What a run is: frozen facts, and the run directory that holds them."""
