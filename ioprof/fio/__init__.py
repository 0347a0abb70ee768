"""The storage ceiling: fio, driven read-only on the dataset's own files and read back."""
