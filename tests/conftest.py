"""Fixtures and guards that every test shares."""
