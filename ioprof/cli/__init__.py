"""The command line: one file per command. Only here is anything printed."""
