"""ioprof: how much must storage deliver so that N accelerators never wait, and does it?"""
