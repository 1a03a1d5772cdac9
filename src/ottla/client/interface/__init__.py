"""Parts of the public classes that all clients share: checks of arguments, client ids, reprs, interceptors."""
