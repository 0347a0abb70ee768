"""`python -m ioprof` is the same command as `ioprof`."""

from ioprof.cli.main import main

if __name__ == "__main__":
    main()
