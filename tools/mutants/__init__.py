"""Plants small mistakes in the pure rooms, one at a time, and looks whether a test notices: `make mutants`.

mutations   what mistakes a module could have            (pure)
rooms       which modules are tried, by which tests
house       a copy of the package, uncompiled, with one mistake in it
witness     which test reaches which line, and how long it takes
trial       a process of its own that runs these tests
score       what came out, kept in `score.toml`
"""
