"""Questions to a trace: one file a question, with one public function of its name.

Sweeps over time stand in the core. Every function takes a `Trace` and, where it is about a
part of it, a `Window` from `longpole.choose_window`.
"""
