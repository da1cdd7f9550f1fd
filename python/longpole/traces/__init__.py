"""Several ranks as one program: reading, joining, and who is late.

`sources` finds the files, `reading` reduces each rank where an engine of `engines` runs,
`trace_set` joins them, `late_ranks` compares them, `merge` writes them as one trace.
`flight_recorder` reads dumps of a hang, `dump_set` joins these.
"""
