"""Traces of several ranks, analysed as one program: reading, joining, and finding late ranks.

`sources` finds the files, `reading` reduces each rank in a worker of `engines`, `trace_set` joins
them, `late_ranks` compares them, and `merge` writes them as one trace. `flight_recorder` reads the
dumps of a hang, and `dump_set` joins these.
"""
