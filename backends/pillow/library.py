"""The parts of Pillow that we use, imported when they are first needed."""

from simulator.contract import Library

PIL = Library("PIL", distribution="pillow", extra="pillow")
Image = Library("PIL.Image", distribution="pillow", extra="pillow")
ImageCms = Library("PIL.ImageCms", distribution="pillow", extra="pillow")
ImageDraw = Library("PIL.ImageDraw", distribution="pillow", extra="pillow")
ImageFont = Library("PIL.ImageFont", distribution="pillow", extra="pillow")
ImageOps = Library("PIL.ImageOps", distribution="pillow", extra="pillow")
