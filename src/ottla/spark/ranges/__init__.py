"""Which offsets a query reads: options as bounds, bounds as numbers, numbers shared out among tasks."""
