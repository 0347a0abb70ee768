"""Guards that every test shares."""

import signal

# A shell that starts the tests in the background has SIGINT ignored, and so would every program
# that they start: what Ctrl-C does could then not be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
