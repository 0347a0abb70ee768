"""A study: topology × loader × cache, expanded into cells and run one after another."""
