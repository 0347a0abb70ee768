"""The reading side's last floor: a summary as text, as figures and as one page."""
