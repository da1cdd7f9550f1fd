"""Questions about a trace: one file per question, with one public function of the same name.

The core computes everything that scans events in time order. Every function takes a `Trace` and, if
it is about a part of the trace, a `Window` from `longpole.choose_window`.
"""
