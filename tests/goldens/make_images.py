"""Writes tests/goldens/images/ with Pillow 13.0.0, and prints its resized ramps (test_crop.cpp)."""
import numpy as np
from PIL import Image

y, x = np.mgrid[0:24, 0:40]
ramp = np.stack([x * 6, y * 10, (x + y) * 4], -1).astype(np.uint8)
colour, grey = Image.fromarray(ramp), Image.fromarray(ramp[..., 0])
colour.save("images/colour.jpg", quality=95)
colour.save("images/progressive.jpg", quality=95, progressive=True)
colour.convert("CMYK").save("images/cmyk.jpg", quality=95)
grey.save("images/grey.jpg", quality=95)
grey.quantize(64).save("images/palette.png")
alpha = np.full((24, 40, 1), 128, np.uint8)
Image.fromarray(np.concatenate([ramp, alpha], -1)).save("images/alpha.png")
Image.fromarray((x * 6 * 256).astype(np.uint16)).save("images/grey16.png")
for box in [(3, 2, 33, 22), (3, 2, 8, 6)]:
    print(np.array(grey.convert("F").crop(box).resize((8, 8), Image.BILINEAR))[0].tolist())
