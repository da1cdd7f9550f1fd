"""What XProf records in `xplane.pb` besides events: HLO modules and allocations.

The core reads the events of the file. These parts are read when a table asks for them.
"""
