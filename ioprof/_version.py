"""The one place where the version is read from."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("ioprof")
except PackageNotFoundError:  # run from a source tree that was never installed
    VERSION = "0+unknown"
