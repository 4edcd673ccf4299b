"""Makes the photograph of this case: a phone held upright stores it lying, with orientation 6."""

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

random = np.random.default_rng(0)
image = Image.new("RGB", (192, 256), (120, 160, 210))
draw = ImageDraw.Draw(image)
draw.rectangle((0, 170, 192, 256), fill=(90, 130, 60))
for _ in range(60):
    left, top = random.integers(0, 180), random.integers(0, 240)
    right, bottom = left + random.integers(5, 40), top + random.integers(5, 40)
    draw.ellipse((left, top, right, bottom), fill=tuple(random.integers(0, 256, 3).tolist()))
upright = image.filter(ImageFilter.GaussianBlur(1))
exif = Image.Exif()
exif[0x0112] = 6
upright.transpose(Image.Transpose.ROTATE_90).save("images/phone.jpg", exif=exif, quality=85)
