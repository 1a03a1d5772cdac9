"""`ottla pipeline`: run, watch and control pipelines that are defined in files."""
