"""Several ranks as one program: reading, joining, and who is late.

`sources` finds the files, `reading` reduces each rank, `trace_set` joins them, `late_ranks`
compares them.
"""
