"""What people and programs use: the command line, the web server, the MCP server."""
