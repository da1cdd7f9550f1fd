"""FLOPs and bytes of the operators of inference servers, one kind of operator in each file.

Each file names the sources of the positions of arguments. An operator whose inputs have other
shapes than its formula expects stays unknown.
"""
