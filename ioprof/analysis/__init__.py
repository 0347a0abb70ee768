"""From what was recorded to what it means. Pure: a run directory in, numbers with evidence out."""
