"""`ottla pipeline`: pipelines that are written in files, run, watched and steered from a shell."""
