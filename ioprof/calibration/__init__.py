"""Find out, by reading a known amount, which counter says what storage delivered."""
