"""Drop-in replacements for the interfaces of other tools."""
