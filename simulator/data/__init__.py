"""Data: sources x labels.

``card`` reads a data card and finds its ``format``: a source or a label kind. A ``source`` (in
``tables``, ``tar``, ``parquet``, ``video``) finds samples, each a name and a place; a
``label_kind`` (``coco``, ``voc``, ``yolo``, ``masks``, …) says their truths by name.
``remote`` and ``asking`` reach what is behind URLs, ``shards`` and ``archive`` what holds many
samples, ``listing`` what is in a folder. ``recording`` and ``capture`` are answers of real devices.
"""
