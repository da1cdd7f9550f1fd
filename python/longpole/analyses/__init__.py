"""Questions about a trace: one file per question, with one public function of the same name.

Sweeps over time are in the core. Every function takes a `Trace` and, if it is about a part of the
trace, a `Window` from `longpole.choose_window`.
"""
