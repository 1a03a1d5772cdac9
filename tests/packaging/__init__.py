"""Tests of the files in `packaging/`: the image, units and manifests."""
