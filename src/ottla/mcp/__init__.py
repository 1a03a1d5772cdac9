"""A server of the Model Context Protocol over a cluster, for programs with language models: `ottla mcp`.

    program ──stdio──► server ──► read_tools, write_tools ──► ottla.console.cluster ──► clients
                                        │
                                        └──► bounds (pure): how much one call may return

The tools have the names of KIP-1318. Tools that change something exist only with `--allow-writes`.
"""
