"""The trainer: one plain loop, one file per loader, one frozen config.

It sees nothing of ioprof but `ioprof.mark`, like any other training script.
"""
