"""The MCP server: lets a coding agent start reviews, follow them and work for them."""
