"""Write the right product for `matmul.toml`, computed by numpy in double precision."""

import numpy as np

i, j = np.indices((512, 512))
product = ((i * 7 + j) % 11 / 11) @ ((i + j * 5) % 13 / 13)
product.astype(np.float32).tofile("reference.bin")
