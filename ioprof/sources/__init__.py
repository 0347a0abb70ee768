"""Counter sources: one file per family, one line each in `ioprof.sources.registry`."""
