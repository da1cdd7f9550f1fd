"""Profiles of MindSpore, read without MindSpore; `longpole.mindspore` has the public names."""
