"""`python -m ioprof_pipelines`, on every rank."""

import sys

from ioprof_pipelines.train import main

if __name__ == "__main__":
    sys.exit(main())
