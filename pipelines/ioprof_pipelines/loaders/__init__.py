"""Loaders: one file each, one line here."""

from __future__ import annotations

from importlib import import_module

from ioprof_pipelines.loaders.loader import Loader, Part

LOADERS = {
    "synthetic": "ioprof_pipelines.loaders.synthetic:SyntheticLoader",
    "cached": "ioprof_pipelines.loaders.cached:CachedLoader",
    "reads": "ioprof_pipelines.loaders.reads:ReadsLoader",
    "torch-files": "ioprof_pipelines.loaders.torch_files:TorchFilesLoader",
    "dali-files": "ioprof_pipelines.loaders.dali_files:DaliFilesLoader",
}


def open_loader(part: Part) -> Loader:
    """The loader that the config names; ValueError lists those there are."""
    name = part.config.loader
    if name not in LOADERS:
        raise ValueError(f"There is no loader {name!r}. Choose from: {', '.join(LOADERS)}.")
    module, _, attribute = LOADERS[name].partition(":")
    loader: Loader = getattr(import_module(module), attribute)(part)
    return loader
