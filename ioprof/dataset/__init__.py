"""The dataset: made, surveyed, and listed once for all loaders."""
