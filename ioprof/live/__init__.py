"""What the counters say now: two looks apart by an interval, in memory, nothing recorded."""
